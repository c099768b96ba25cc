-- destroy: remove a queue in which nothing runs, with all that it holds but its
-- unique keys, which "free" removes then, and its lanes, which expire.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] dead    stream of post-mortems
-- KEYS[8] index   hash, id -> entry of dead
-- KEYS[9] meta    hash
-- KEYS[10] minutes hash, the counters at the start of each minute
-- KEYS[11] wake   list of tokens
-- KEYS[12] lane   the caller's lane
-- KEYS[13] workers sorted set
-- KEYS[14] info   hash, tag -> what a worker says of itself
-- KEYS[15] done   hash, id -> record of a job that is over
-- KEYS[16] done_at sorted set, score = ms until which it is kept
-- KEYS[17] schedules hash, id -> definition
-- KEYS[18] at     sorted set, ids of schedules
-- KEYS[19] states hash, id -> state
-- ARGV[1] seq     sequence in the lane
--
-- returns "stale" | "ok" | "running" | "missing", there is no such queue
-- include: time
-- include: lane
-- include: tell

local seen = lane_seen(KEYS[12], ARGV[1])
if seen then return seen end
local now = math.floor(now_us() / 1000)
local keys = { KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10],
  KEYS[11], KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17], KEYS[18], KEYS[19] }
local answer = 'missing'
-- A key of another type runs nothing, and goes with the rest.
local running = redis.pcall('ZCOUNT', KEYS[5], '(' .. num(now), '+inf')
if type(running) == 'number' and running > 0 then
  answer = 'running'
elseif redis.call('UNLINK', unpack(keys)) > 0 then
  answer = 'ok'
end
lane_tell(KEYS[12], ARGV[1], answer)
return answer
