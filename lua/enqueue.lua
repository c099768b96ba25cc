-- enqueue: add jobs, or replace those that wait; all of a call, or none.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record of every other live job
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] meta    hash
-- KEYS[8] minutes hash, the counters at the start of each minute
-- KEYS[9] wake    list of tokens
-- KEYS[10] lane   the caller's lane
-- KEYS[11..]      unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] n       number of jobs
-- ARGV[3..]       per job: low half of its id, record, and how it waits: "" for
--                 at once, or "<d|a> <ms> <priority> <unique> <d|s> <window>":
--                 delay or absolute time, the unique key as an index into
--                 KEYS[11..] (0: none), its mode and its window in ms. One word
--                 more says what becomes of a job that waits under the key: "r", it
--                 is replaced; "l", that too, and behind one that runs this one waits
--
-- returns "stale" | "<us> <marks> <holder>…": the microseconds of the first new
-- id (each next one is one more), and for each job "." new, "d" duplicate or "r"
-- duplicate that has replaced the one that waited, then the ids of those that stand
-- for the duplicates, in order
-- include: time
-- include: lane
-- include: head
-- include: runs
-- include: parked
-- include: unique_own
-- include: unique_take
-- include: wake
-- include: tally
-- include: add

local seen = lane_seen(KEYS[10], ARGV[1])
if seen then return seen end

local us = now_us()
local keys = { jobs = KEYS[1], held = KEYS[2], due = KEYS[3], prio = KEYS[4], leases = KEYS[5],
  runs = KEYS[6], meta = KEYS[7], wake = KEYS[9], unique = 10 }
local meta = redis.call('HMGET', KEYS[7], 'last', 'n:enqueued')
local minute = minute_turned(KEYS[8], math.floor(us / 1000))
local plan = add_plan(keys, ARGV, 3, tonumber(ARGV[2]), us, meta[1])
if type(plan) == 'string' then return redis.error_reply(plan) end

add_write(keys, plan)
minute_note(KEYS[8], KEYS[7], minute)
add_count(keys, plan, meta[2])

local answer = num(plan.first) .. ' ' .. table.concat(plan.marks)
if #plan.holders > 0 then answer = answer .. ' ' .. table.concat(plan.holders, ' ') end
lane_keep(KEYS[10], ARGV[1], answer)
return answer
