-- retry: put jobs back to run again later, with a new record: after a failure,
-- a snooze, or because this worker does not know their kind. Behind which another
-- waits under its unique key is over instead, and counts as discarded.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] leases  sorted set, score = deadline ms
-- KEYS[5] runs    hash, id -> run entry
-- KEYS[6] meta    hash
-- KEYS[7] minutes hash, the counters at the start of each minute
-- KEYS[8] wake    list of tokens
-- KEYS[9] lane    the caller's lane
-- KEYS[10] done   hash, id -> record of a job that is over
-- KEYS[11] done_at sorted set, score = ms until which it is kept
-- KEYS[12..]      unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] channel on which the ends of jobs are told that leave something
-- ARGV[3..]       per job: id, token, record, delay ms, counter (retried,
--                 snoozed; retried counts a failed attempt too), the index of
--                 its unique key in KEYS[12..] (0: none), with an idempotency
--                 key followed by that one's index, and what it leaves if it is over:
--                 "", or "<ms> <field>" as cancel has it
--
-- returns "stale" | a letter per job: "k" put back, "s" over, since another waited
-- behind it, "c" to be cancelled instead (nothing done; the caller settles it so),
-- "l" lost
-- include: time
-- include: lane
-- include: head
-- include: runs
-- include: fence
-- include: full
-- include: wake
-- include: parked
-- include: unique_own
-- include: kept
-- include: ended
-- include: tally

local seen = lane_seen(KEYS[9], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('HLEN', KEYS[6])
local waiting = redis.call('LLEN', KEYS[8])

local ids, tokens = {}, {}
for i = 3, #ARGV, 7 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[4], KEYS[5], ids, tokens)
local us = now_us()
local now, from = math.floor(us / 1000), math.ceil(us / 1000)
local minute = minute_turned(KEYS[7], now)
local back, over, held, due, counts, passes, idems, nearest = {}, {}, {}, {}, {}, {}, {}, nil
local told, bodies, times, stale = {}, {}, {}, nil
for i, id in ipairs(ids) do
  local unique, idem = string.match(ARGV[7 * i + 1], '^(%d+) ?(%d*)$')
  local key, till, next_id = KEYS[11 + tonumber(unique)], nil, nil
  if marks[i] == 'k' and idem ~= '' then idems[#idems + 1] = { KEYS[11 + tonumber(idem)], id } end
  if marks[i] == 'k' and unique ~= '0' then till, next_id = unique_owned(key, id) end
  if next_id and is_parked(redis.call('ZSCORE', KEYS[3], next_id)) and redis.call('HEXISTS', KEYS[2], next_id) == 1 then
    marks[i] = 's'
    back[#back + 1] = id
    over[#over + 1] = id
    passes[#passes + 1] = { key, till, next_id }
    if ARGV[7 * i] == 'retried' then counts.failed = (counts.failed or 0) + 1 end
    if ARGV[7 * i + 2] ~= '' then
      -- include: left
      local kept_record, ms = left_read(ARGV[7 * i + 2], ARGV[7 * i - 2])
      told[#told + 1] = id
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = kept_record
      times[#times + 1] = num(now + ms)
      times[#times + 1] = id
    end
  elseif marks[i] == 'k' then
    local at = from + tonumber(ARGV[7 * i - 1])
    local record = ARGV[7 * i - 2]
    local _, started, crashes = head_read(record)
    if not started then
      -- This holder has not run it. One before it may have, and put nothing back.
      local _, _, flags_s = run_read(redis.call('HGET', KEYS[5], id))
      if string.find(flags_s, 'r', 1, true) then record = head_run(record, crashes) end
    end
    back[#back + 1] = id
    held[#held + 1] = id
    held[#held + 1] = head_due(record, at)
    due[#due + 1] = num(at)
    due[#due + 1] = id
    local counter = ARGV[7 * i]
    counts[counter] = (counts[counter] or 0) + 1
    if not nearest or at < nearest then nearest = at end
  end
end
if #told > 0 then
  redis.call('HLEN', KEYS[10])
  stale = kept_stale(KEYS[11], #told, now, 2 * #told + 16)
end

write_when_full(KEYS[4])
if #back > 0 then
  redis.call('XDEL', KEYS[1], unpack(back))
  if #held > 0 then
    redis.call('HSET', KEYS[2], unpack(held))
    redis.call('ZADD', KEYS[3], unpack(due))
  end
  redis.call('ZREM', KEYS[4], unpack(back))
  redis.call('HDEL', KEYS[5], unpack(back))
  minute_note(KEYS[7], KEYS[6], minute)
  for counter, count in pairs(counts) do
    tally(KEYS[6], 'n:' .. string.lower(counter), count)
    if counter == 'retried' then tally(KEYS[6], 'n:failed', count) end
  end
  if nearest and wake_due(KEYS[3], nearest, now) then wake_push(KEYS[8], 1, waiting) end
  if #over > 0 then
    redis.call('HDEL', KEYS[2], unpack(over))
    tally(KEYS[6], 'n:discarded', #over)
    if #told > 0 then kept_write(KEYS[10], KEYS[11], stale, bodies, times) end
    -- include: unique_pass
    unique_pass_all(passes, KEYS[2], KEYS[3], KEYS[8], redis.call('LLEN', KEYS[8]), now)
  end
  if #idems > 0 then
    -- include: idem
    -- include: idem_end
    for _, e in ipairs(idems) do idem_end(e[1], e[2], 0, KEYS[4], now) end
  end
end
if #alive > 0 then redis.call('HSET', KEYS[5], unpack(alive)) end
ended_tell(ARGV[2], told)
local answer = table.concat(marks)
lane_keep(KEYS[9], ARGV[1], answer)
return answer
