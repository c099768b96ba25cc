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
-- KEYS[12] done   hash, id -> record of a job that is over
-- KEYS[13] done_at sorted set, score = ms until which it is kept
-- KEYS[14..]      its unique key, and its idempotency key, if it has any
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] id
-- ARGV[3] unique  1 if the first of these is its unique key, else 0
-- ARGV[4] channel on which its end is told, if it leaves something
-- ARGV[5] left    "" if it leaves nothing when it ends, or "<ms> <field>", for how long
--                 its record is kept and what that then says of its end (tag 21)
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
-- include: entry
-- include: left
-- include: kept
-- include: ended
-- include: tally

local seen = lane_seen(KEYS[10], ARGV[1])
if seen then return seen end
local id = ARGV[2]
local now = math.floor(now_us() / 1000)
local fresh = redis.call('XRANGE', KEYS[1], id, id)[1]
local held = redis.call('HGET', KEYS[2], id)
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
local deadline = tonumber(redis.call('ZSCORE', KEYS[5], id) or '')
local entry = redis.call('HGET', KEYS[6], id)
local dead = redis.call('HEXISTS', KEYS[7], id) == 1
redis.call('HLEN', KEYS[8])
local minute = minute_turned(KEYS[9], now)
local unique = tonumber(ARGV[3])
local key, idem_key = unique == 1 and KEYS[14], KEYS[14 + unique]
local waiting = redis.call('LLEN', KEYS[11])
local till, next_id, rest_text
if key then
  till, next_id = unique_owned(key, id)
  rest_text = unique_behind(key, id)
end

local kept_record, ms, stale
if ARGV[5] ~= '' and (fresh or held) then
  redis.call('HLEN', KEYS[12])
  kept_record, ms = left_read(ARGV[5], held or entry_record(fresh))
  stale = kept_stale(KEYS[13], 1, now, 18)
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
    if kept_record then
      kept_write(KEYS[12], KEYS[13], stale, { id, kept_record }, { num(now + ms), id })
      ended_tell(ARGV[4], { id })
    end
    minute_note(KEYS[9], KEYS[8], minute)
    tally(KEYS[8], 'n:cancelled', 1)
    answer = 'gone'
  end
end
lane_tell(KEYS[10], ARGV[1], answer)
return answer
