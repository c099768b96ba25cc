-- tally adds to a counter of meta. One that a hand edit made no number, or that
-- is at its end, starts anew: it must not stop a script in mid-write.
local function tally(meta, name, by)
  local reply = redis.pcall('HINCRBY', meta, name, by)
  if type(reply) == 'table' and reply.err then redis.call('HSET', meta, name, by) end
end
