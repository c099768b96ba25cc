-- trim: let finished jobs go whose time is over, and those above the most that a queue
-- keeps. Each is judged in this moment, so that a call may be sent again, or come late.
--
-- KEYS[1] done    hash, id -> record of a job that is over
-- KEYS[2] done_at sorted set, score = ms until which it is kept
--
-- returns "<gone> <more>": how many were let go, and 1 if there may be others, else 0
-- include: time
-- include: kept

redis.call('HLEN', KEYS[1])
local most = 250
local stale = kept_stale(KEYS[2], 0, math.floor(now_us() / 1000), most)
kept_write(KEYS[1], KEYS[2], stale, {}, {})
return num(#stale) .. (#stale == most and ' 1' or ' 0')
