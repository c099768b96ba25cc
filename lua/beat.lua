-- beat: a worker shows that it lives, or that it has stopped. A beat may be
-- repeated, or come late: it is forgotten after a minute. So it needs no lane.
--
-- KEYS[1] workers sorted set, tag of a worker by its last beat, ms
-- KEYS[2] info    hash, tag -> what the worker says of itself
-- KEYS[3] at      sorted set, ids of schedules, score = ms of the next tick
-- ARGV[1] tag
-- ARGV[2] info    or "": it has stopped
--
-- returns "ok <ms>", until the first tick of a schedule, or "ok -": there is none
-- include: time
-- include: schedule

local now = math.floor(now_us() / 1000)
redis.call('HLEN', KEYS[2])
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', num(now - 60000), 'LIMIT', 0, 100)
if ARGV[2] == '' or #old == 0 then old[#old + 1] = ARGV[1] end
redis.call('ZREM', KEYS[1], unpack(old)) -- first, since a full Redis allows it
redis.call('HDEL', KEYS[2], unpack(old))
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[1], num(now), ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  -- The last worker's entry goes with nobody left to remove it.
  redis.call('PEXPIRE', KEYS[1], 120000)
  redis.call('PEXPIRE', KEYS[2], 120000)
end
return 'ok ' .. schedule_wait_text(KEYS[3], now)
