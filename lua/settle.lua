-- settle: end jobs that are over (done, skipped, discarded or cancelled) and free all
-- that they hold.
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
-- KEYS[10..]      unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       per job: id, token, counter (done, skipped and canary, which count as
--                 done too, discarded, cancelled) and
--                 the index of its unique key in KEYS[10..] (0: none), with an
--                 idempotency key followed by " <index> <ms>": of that one, and for
--                 how long it is done from now on (0: it is free)
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
-- include: tally

local seen = lane_seen(KEYS[7], ARGV[1])
if seen then return seen end
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[5])
local now = math.floor(now_us() / 1000)
local minute = minute_turned(KEYS[6], now)

local ids, tokens = {}, {}
for i = 2, #ARGV, 4 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[3], KEYS[4], ids, tokens)
local ended, counts = {}, {}
for i, id in ipairs(ids) do
  local counter, word = ARGV[4 * i], ARGV[4 * i + 1]
  -- What is done is done, whoever has cancelled it.
  if marks[i] == 'c' and counter ~= 'discarded' then marks[i] = 'k' end
  if marks[i] == 'k' then
    ended[#ended + 1] = id
    counts[counter] = (counts[counter] or 0) + 1
    if word ~= '0' then keys_end(id, word, 9) end
  end
end

local waiting = 0
if #passes > 0 then
  redis.call('ZCARD', KEYS[8])
  waiting = redis.call('LLEN', KEYS[9])
end

if #ended > 0 then
  -- Else the XDEL is the first write: it tells a stream from anything else, and runs
  -- in a full Redis.
  if #idems > 0 then -- while those that end beside them have their leases
    -- include: idem
    -- include: idem_end
    redis.call('XLEN', KEYS[1])
    write_when_full(KEYS[3])
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
  minute_note(KEYS[6], KEYS[5], minute)
  for counter, count in pairs(counts) do
    if counter == 'canary' then
      redis.call('HSET', KEYS[5], 'canary', num(now)) -- it came through
    else
      tally(KEYS[5], 'n:' .. string.lower(counter), count)
    end
    if counter == 'skipped' or counter == 'canary' then tally(KEYS[5], 'n:done', count) end
  end
else
  write_when_full(KEYS[3])
end
if #alive > 0 then redis.call('HSET', KEYS[4], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[7], ARGV[1], answer)
return answer
