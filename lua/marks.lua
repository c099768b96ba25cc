-- marks: what is wrong with idempotency keys, all looked at in one moment. Reads
-- only.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3..]       idempotency keys
--
-- returns a text per key; "" where nothing is wrong
-- include: idem

local reply = {}
for i = 3, #KEYS do
  local id, mode = idem_read(KEYS[i])
  local text = ''
  if mode == 'mistyped' then
    text = 'is of a wrong type'
  elseif not id then
    if redis.call('EXISTS', KEYS[i]) == 1 then text = 'names no job' end
  elseif mode == 'd' then
    if redis.call('PTTL', KEYS[i]) == -1 then text = 'is done and has no expiry' end
  elseif redis.call('HEXISTS', KEYS[2], id) == 0 and
    not (string.find(id, '^%d+%-%d+$') and #redis.call('XRANGE', KEYS[1], id, id) > 0) then
    -- The next job under it takes it over, but it should not be.
    text = 'is marked by a job that is over'
  end
  reply[#reply + 1] = text
end
return reply
