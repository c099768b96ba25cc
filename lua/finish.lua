-- finish: settle for jobs that leave something: a record that is kept for a while.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] leases  sorted set, score = deadline ms
-- KEYS[4] runs    hash, id -> run entry
-- KEYS[5] meta    hash
-- KEYS[6] minutes hash, the counters at the start of each minute
-- KEYS[7] lane    the caller's lane
-- KEYS[8] due     sorted set, score = ms
-- KEYS[9] wake    list of tokens
-- KEYS[10] done   hash, id -> record of a job that is over
-- KEYS[11] done_at sorted set, score = ms until which it is kept
-- KEYS[12..]      unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] channel on which the ends of kept jobs are told
-- ARGV[3..]       per job: id, token, counter and the indexes of its keys in KEYS[12..]
--                 as settle has them, the record to keep, and for how many ms
--
-- returns "stale" | a letter per job: "k" ended, "c" to be cancelled instead of
-- discarded (nothing done; the caller settles it so), "l" lost
-- include: time
-- include: lane
-- include: runs
-- include: fence
-- include: full
-- include: unique_own
-- include: keys_end
-- include: kept
-- include: ended
-- include: tally

local seen = lane_seen(KEYS[7], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[5])
redis.call('HLEN', KEYS[10])
local now = math.floor(now_us() / 1000)
local minute = minute_turned(KEYS[6], now)

local ids, tokens = {}, {}
for i = 3, #ARGV, 6 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[3], KEYS[4], ids, tokens)
local ended, counts, bodies, times = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local counter, word, kept_record, ms = ARGV[6 * i - 1], ARGV[6 * i], ARGV[6 * i + 1], tonumber(ARGV[6 * i + 2])
  -- What is done is done, whoever has cancelled it.
  if marks[i] == 'c' and counter ~= 'discarded' then marks[i] = 'k' end
  if marks[i] == 'k' then
    ended[#ended + 1] = id
    counts[counter] = (counts[counter] or 0) + 1
    if word ~= '0' then keys_end(id, word, 11) end
    bodies[#bodies + 1] = id
    bodies[#bodies + 1] = kept_record
    times[#times + 1] = num(now + ms)
    times[#times + 1] = id
  end
end
local stale = kept_stale(KEYS[11], #ended, now, 2 * #ended + 16)

local waiting = 0
if #passes > 0 then
  redis.call('ZCARD', KEYS[8])
  waiting = redis.call('LLEN', KEYS[9])
end

write_when_full(KEYS[3])
if #ended > 0 then
  if #idems > 0 then -- while those that end beside them have their leases
    -- include: idem
    -- include: idem_end
    for _, e in ipairs(idems) do idem_end(e[1], e[2], e[3], KEYS[3], now) end
  end
  local gone = redis.call('XDEL', KEYS[1], unpack(ended))
  if gone < #ended then redis.call('HDEL', KEYS[2], unpack(ended)) end
  redis.call('ZREM', KEYS[3], unpack(ended))
  redis.call('HDEL', KEYS[4], unpack(ended))
  for _, free in ipairs(frees) do unique_free(free[1], free[2], now) end
  if #passes > 0 then
    -- include: head
    -- include: wake
    -- include: parked
    -- include: unique_pass
    unique_pass_all(passes, KEYS[2], KEYS[8], KEYS[9], waiting, now)
  end
  kept_write(KEYS[10], KEYS[11], stale, bodies, times)
  minute_note(KEYS[6], KEYS[5], minute)
  for counter, count in pairs(counts) do
    tally(KEYS[5], 'n:' .. string.lower(counter), count)
    if counter == 'skipped' then tally(KEYS[5], 'n:done', count) end
  end
  ended_tell(ARGV[2], ended)
end
if #alive > 0 then redis.call('HSET', KEYS[4], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[7], ARGV[1], answer)
return answer
