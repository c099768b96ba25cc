-- tick: fire schedules whose time has come: add their jobs and move on to their next
-- times, each only if it is as the caller saw it. Or fire one at once, its next time as
-- it was.
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
-- KEYS[11] schedules hash, id -> definition
-- KEYS[12] at     sorted set, ids of those that are not paused, score = ms of the next tick
-- KEYS[13] states hash, id -> state
-- KEYS[14..]      unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       per schedule: id, the state that was seen, ms of its next tick, how
--                 many ticks passed without a job, the number of jobs; then per job:
--                 the ms of its tick, and low half, record and how as to enqueue
--
-- returns "stale" | "<wait> <marks>", and if there are jobs " <us> <marks> <holder>…"
-- as enqueue answers of the jobs of the schedules that were fired. wait is the ms until the
-- first tick of the queue, or "-"; a mark is "k", fired, "l", it is another by now, or
-- "e", it is not yet time
-- include: time
-- include: lane
-- include: tell
-- include: head
-- include: runs
-- include: parked
-- include: unique_own
-- include: unique_take
-- include: wake
-- include: tally
-- include: add
-- include: schedule

local seen = lane_seen(KEYS[10], ARGV[1])
if seen then return seen end
local us = now_us()
local now = math.floor(us / 1000)
redis.call('XLEN', KEYS[1])
redis.call('LLEN', KEYS[9])
redis.call('HLEN', KEYS[11])
redis.call('ZCARD', KEYS[12])
redis.call('HLEN', KEYS[13])

local marks, fired, list = {}, {}, {}
local at = 2
while at <= #ARGV do
  local id, state_text, next_s, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 4])
  local state = schedule_read(state_text)
  local mark = 'k'
  if not state or redis.call('HGET', KEYS[13], id) ~= state_text or redis.call('HEXISTS', KEYS[11], id) == 0 then
    mark = 'l'
  elseif state.paused_s == '1' and next_s ~= state.next_s then
    mark = 'l'
  end
  for i = at + 5, at + 4 * count + 1, 4 do
    if mark == 'k' and tonumber(ARGV[i]) > now then mark = 'e' end
  end
  if mark == 'k' then
    for i = at + 5, at + 4 * count + 1, 4 do
      list[#list + 1] = ARGV[i + 1]
      list[#list + 1] = ARGV[i + 2]
      list[#list + 1] = ARGV[i + 3]
      state.last_s = ARGV[i]
    end
    state.id, state.seen_text, state.count, state.next_s = id, state_text, count, next_s
    state.missed = state.missed + tonumber(ARGV[at + 3])
    fired[#fired + 1] = state
  end
  marks[#marks + 1] = mark
  at = at + 5 + 4 * count
end

local keys = { jobs = KEYS[1], held = KEYS[2], due = KEYS[3], prio = KEYS[4], leases = KEYS[5],
  runs = KEYS[6], meta = KEYS[7], wake = KEYS[9], unique = 13 }
local meta = redis.call('HMGET', KEYS[7], 'last', 'n:enqueued')
local minute = minute_turned(KEYS[8], now)
local plan
if #list > 0 then
  plan = add_plan(keys, list, 1, #list / 3, us, meta[1])
  if type(plan) == 'string' then return redis.error_reply(plan) end
end

local states, times = {}, {}
local job, holder = 0, 0
for _, state in ipairs(fired) do
  for i = job + 1, job + state.count do
    if plan.marks[i] == '.' then
      -- Each new job's us is one above that of the one before.
      local low_text = list[3 * i - 2]
      state.job_id = num(plan.first + i - 1 - holder) .. '-' .. low_text
      state.fired = state.fired + 1
    else
      holder = holder + 1
      if plan.marks[i] == 'r' then
        state.job_id = plan.holders[holder]
        state.fired = state.fired + 1
      else
        state.skipped = state.skipped + 1
      end
    end
  end
  job = job + state.count
  states[#states + 1] = state.id
  states[#states + 1] = state.head_s .. ' ' .. state.next_s .. ' ' .. state.last_s .. ' ' .. state.job_id .. ' ' ..
    num(state.fired) .. ' ' .. num(state.missed) .. ' ' .. num(state.skipped) .. ' ' .. state.paused_s
  if state.paused_s == '0' then
    times[#times + 1] = state.next_s
    times[#times + 1] = state.id
  end
end

-- Who may not write this would make a job, and the same again and again.
if #states > 0 then redis.call('HSET', KEYS[13], fired[1].id, fired[1].seen_text) end
if plan then add_write(keys, plan) end
if #states > 0 then redis.call('HSET', KEYS[13], unpack(states)) end
if #times > 0 then redis.call('ZADD', KEYS[12], unpack(times)) end
if plan then
  minute_note(KEYS[8], KEYS[7], minute)
  add_count(keys, plan, meta[2])
end
local answer = schedule_wait_text(KEYS[12], now) .. ' ' .. table.concat(marks)
if plan then
  answer = answer .. ' ' .. num(plan.first) .. ' ' .. table.concat(plan.marks)
  if #plan.holders > 0 then answer = answer .. ' ' .. table.concat(plan.holders, ' ') end
end
lane_tell(KEYS[10], ARGV[1], answer)
return answer
