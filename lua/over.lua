-- over: which of some jobs are over, and how. Reads only.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record of every other live job
-- KEYS[3] leases  sorted set, score = deadline ms
-- KEYS[4] dead    stream of post-mortems
-- KEYS[5] index   hash, id -> entry of dead
-- KEYS[6] done    hash, id -> record of a job that is over and kept
-- KEYS[7] done_at sorted set, score = ms until which it is kept
-- ARGV[1..]       ids
--
-- returns three words per id, for as many as come to a megabyte: "live", "gone",
-- "dead" or "done", over in any way and kept; then, of the last two, the record, and
-- the entry of dead, or the ms until which it is kept; else "" and ""
-- include: time
-- include: entry

local now = math.floor(now_us() / 1000)
local leased = redis.call('ZMSCORE', KEYS[3], unpack(ARGV))
local graves = redis.call('HMGET', KEYS[5], unpack(ARGV))
local tills = redis.call('ZMSCORE', KEYS[7], unpack(ARGV))
local reply, bytes = {}, 0

local function look(i, id)
  if leased[i] or redis.call('HEXISTS', KEYS[2], id) == 1 then return 'live', '', '' end
  -- A hand edit may have left what is no id: an error, and no entry.
  local fresh = redis.pcall('XRANGE', KEYS[1], id, id)[1]
  if fresh then
    bytes = bytes + #entry_record(fresh)
    return 'live', '', ''
  end
  local dead = graves[i] and redis.pcall('XRANGE', KEYS[4], graves[i], graves[i])[1]
  if dead and dead[2][3] == 'p' then return 'dead', dead[2][4], graves[i] end
  local till = tills[i]
  local kept_record = till and tonumber(till) > now and redis.call('HGET', KEYS[6], id)
  if kept_record then return 'done', kept_record, till end
  return 'gone', '', ''
end

for i, id in ipairs(ARGV) do
  local word, record, place = look(i, id)
  bytes = bytes + #record
  for _, part in ipairs({ word, record, place }) do reply[#reply + 1] = part end
  if bytes >= 1000000 then break end
end
return reply
