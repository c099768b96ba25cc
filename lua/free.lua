-- free: remove unique and idempotency keys whose jobs are over, whatever is left of
-- their windows.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] lane    the caller's lane
-- KEYS[4..]       unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
--
-- returns "stale" | a letter per key: "k" removed, "l" its job lives
-- include: time
-- include: lane
-- include: tell
-- include: unique_own

local seen = lane_seen(KEYS[3], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
local marks, gone = {}, {}
for i = 4, #KEYS do
  local value_text = redis.pcall('GET', KEYS[i])
  local id = type(value_text) ~= 'table' and unique_parse(value_text) or nil
  local lives = id and string.find(id, '^%d+%-%d+$') and
    (redis.call('HEXISTS', KEYS[2], id) == 1 or #redis.call('XRANGE', KEYS[1], id, id) > 0)
  marks[#marks + 1] = lives and 'l' or 'k'
  if not lives then gone[#gone + 1] = KEYS[i] end
end
if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
local answer = table.concat(marks)
lane_tell(KEYS[3], ARGV[1], answer)
return answer
