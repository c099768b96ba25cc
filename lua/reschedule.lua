-- reschedule: have a job that waits run at another time, or now.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] index   hash, id -> entry of the dead-letter stream
-- KEYS[8] wake    list of tokens
-- KEYS[9] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] id
-- ARGV[3] at      ms; what is past is now
-- ARGV[4] record  what becomes of a record from jobs: the same, with a long head
--
-- returns "stale" | "ok" | "running" | "parked" | "cancelled", it waits to be ended
-- so | "dead" | "missing"
-- include: time
-- include: lane
-- include: tell
-- include: head
-- include: runs
-- include: entry
-- include: parked
-- include: wake

local seen = lane_seen(KEYS[9], ARGV[1])
if seen then return seen end
local id = ARGV[2]
local now = math.floor(now_us() / 1000)
local fresh = #redis.call('XRANGE', KEYS[1], id, id) > 0
local record = redis.call('HGET', KEYS[2], id)
if fresh then record = ARGV[4] end
local due = tonumber(redis.call('ZSCORE', KEYS[3], id) or '')
redis.call('ZCARD', KEYS[4])
local deadline = tonumber(redis.call('ZSCORE', KEYS[5], id) or '')
local entry = redis.call('HGET', KEYS[6], id)
local dead = redis.call('HEXISTS', KEYS[7], id) == 1
local waiting = redis.call('LLEN', KEYS[8])
local _, crashes, flags_s = run_read(entry)
local at = math.max(now, tonumber(ARGV[3]))

local answer = 'ok'
if not record then
  answer = dead and 'dead' or 'missing'
elseif deadline and deadline > now then
  answer = 'running'
elseif is_parked(due) then
  answer = 'parked'
elseif string.find(flags_s, 'c', 1, true) then
  answer = 'cancelled'
elseif at > now or due and due > now then
  if deadline and not string.find(flags_s, 'u', 1, true) then
    -- The lease of before ends here; a crash that was not counted yet is now.
    local _, _, head_crashes = head_read(record)
    crashes = math.max(crashes, head_crashes)
    if deadline ~= 0 then crashes = crashes + 1 end
    record = head_run(record, crashes)
  end
  redis.call('ZADD', KEYS[3], num(at), id)
  redis.call('HSET', KEYS[2], id, head_due(record, at))
  if fresh then redis.call('XDEL', KEYS[1], id) end
  redis.call('ZREM', KEYS[4], id)
  redis.call('ZREM', KEYS[5], id)
  redis.call('HDEL', KEYS[6], id)
  if wake_due(KEYS[3], at, now) then wake_push(KEYS[8], 1, waiting) end
end
lane_tell(KEYS[9], ARGV[1], answer)
return answer
