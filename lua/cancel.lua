-- cancel: end a job by its id. A waiting one is gone on return; a running one
-- is flagged, and its holder learns of it with its next extend.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] index   hash, id -> entry of the dead-letter stream
-- KEYS[8] meta    hash
-- KEYS[9] minutes hash, the counters at the start of each minute
-- KEYS[10] lane   the caller's lane
-- KEYS[11] wake   list of tokens
-- KEYS[12..]      its unique key, and its idempotency key, if it has any
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] id
-- ARGV[3] unique  1 if the first of these is its unique key, else 0
--
-- returns "stale" | "gone" | "flagged" | "dead" | "missing"
-- include: time
-- include: lane
-- include: tell
-- include: runs
-- include: full
-- include: unique_own
-- include: unique_behind
-- include: erase
-- include: tally

local seen = lane_seen(KEYS[10], ARGV[1])
if seen then return seen end
local id = ARGV[2]
local now = math.floor(now_us() / 1000)
local fresh = #redis.call('XRANGE', KEYS[1], id, id) > 0
local held = redis.call('HEXISTS', KEYS[2], id) == 1
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
local deadline = tonumber(redis.call('ZSCORE', KEYS[5], id) or '')
local entry = redis.call('HGET', KEYS[6], id)
local dead = redis.call('HEXISTS', KEYS[7], id) == 1
redis.call('HLEN', KEYS[8])
local minute = minute_turned(KEYS[9], now)
local unique = tonumber(ARGV[3])
local key, idem_key = unique == 1 and KEYS[12], KEYS[12 + unique]
local waiting = redis.call('LLEN', KEYS[11])
local till, next_id, rest_text
if key then
  till, next_id = unique_owned(key, id)
  rest_text = unique_behind(key, id)
end

local answer = dead and 'dead' or 'missing'
if fresh or held then
  write_when_full(KEYS[5])
  if deadline and deadline > now then
    local token, crashes, flags_s, before_token, progress_text = run_read(entry)
    if not string.find(flags_s, 'c', 1, true) then flags_s = 'c' .. flags_s end
    redis.call('HSET', KEYS[6], id, run_text(token or '', crashes, flags_s, before_token, progress_text))
    answer = 'flagged'
  else
    erase(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], { id })
    if rest_text then redis.call('SET', key, rest_text) end
    if next_id then
      -- include: head
      -- include: wake
      -- include: parked
      -- include: unique_pass
      unique_pass_all({ { key, till, next_id } }, KEYS[2], KEYS[3], KEYS[11], waiting, now)
    elseif till then
      unique_free(key, till, now)
    end
    if idem_key then
      -- include: idem
      -- include: idem_end
      idem_end(idem_key, id, 0, KEYS[5], now)
    end
    minute_note(KEYS[9], KEYS[8], minute)
    tally(KEYS[8], 'n:cancelled', 1)
    answer = 'gone'
  end
end
lane_tell(KEYS[10], ARGV[1], answer)
return answer
