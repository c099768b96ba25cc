-- forget: remove jobs that are over and kept, whatever is left of their time.
--
-- KEYS[1] done    hash, id -> record of a job that is over
-- KEYS[2] done_at sorted set, score = ms until which it is kept
-- KEYS[3] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       ids
--
-- returns "stale" | a letter per id: "k" removed, "m" not kept
-- include: time
-- include: lane
-- include: tell

local seen = lane_seen(KEYS[3], ARGV[1])
if seen then return seen end
redis.call('HLEN', KEYS[1])
redis.call('ZCARD', KEYS[2])
local marks = {}
for i = 2, #ARGV do
  marks[#marks + 1] = redis.call('HDEL', KEYS[1], ARGV[i]) == 1 and 'k' or 'm'
  redis.call('ZREM', KEYS[2], ARGV[i])
end
local answer = table.concat(marks)
lane_tell(KEYS[3], ARGV[1], answer)
return answer
