-- pause: lease nothing for a time, or again.
--
-- KEYS[1] meta    hash
-- KEYS[2] wake    list of tokens
-- KEYS[3] lane    the caller's lane
-- KEYS[4] jobs    stream, fresh jobs
-- KEYS[5] held    hash, id -> record
-- KEYS[6] dead    stream of post-mortems
-- KEYS[7] workers sorted set
-- KEYS[8] schedules hash, id -> definition
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] ms      from now on; 0: resume; -1: until it is resumed
--
-- returns "stale" | "ok" | "missing", there is no such queue
-- include: time
-- include: lane
-- include: tell
-- include: wake

local seen = lane_seen(KEYS[3], ARGV[1])
if seen then return seen end
local waiting = redis.call('LLEN', KEYS[2])
redis.call('HLEN', KEYS[1])
local ms = tonumber(ARGV[2])
local answer = 'missing'
if redis.call('EXISTS', KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8]) > 0 then
  answer = 'ok'
  redis.call('HDEL', KEYS[1], 'paused') -- an operator must be heard when Redis is full
  if ms > 0 then redis.call('HSET', KEYS[1], 'paused', num(math.floor(now_us() / 1000) + ms)) end
  if ms < 0 then redis.call('HSET', KEYS[1], 'paused', '253402300799999') end
  -- One worker asks, and learns of the new end; after a resume two do.
  wake_push(KEYS[2], ms == 0 and 2 or 1, waiting)
end
lane_tell(KEYS[3], ARGV[1], answer)
return answer
