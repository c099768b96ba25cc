-- bury: move jobs to the dead-letter queue, each with its post-mortem.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] leases  sorted set, score = deadline ms
-- KEYS[4] runs    hash, id -> run entry
-- KEYS[5] dead    stream of post-mortems
-- KEYS[6] index   hash, id -> entry of dead
-- KEYS[7] meta    hash
-- KEYS[8] minutes hash, the counters at the start of each minute
-- KEYS[9] lane    the caller's lane
-- KEYS[10] due    sorted set, score = ms
-- KEYS[11] wake   list of tokens
-- KEYS[12..]      unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] channel on which the ends of jobs are told that somebody may wait for
-- ARGV[3..]       per job: id, token, post-mortem, what else to count (failed,
--                 expired, both as failed+expired, or ""), with a "!" if its end is
--                 to be told, and
--                 the index of its unique key in KEYS[12..] (0: none), with an
--                 idempotency key followed by that one's index
--
-- returns "stale" | a letter per job: "k" buried, "c" to be cancelled instead
-- (nothing done; the caller settles it so), "l" lost
-- include: time
-- include: lane
-- include: runs
-- include: fence
-- include: full
-- include: unique_own
-- include: keys_end
-- include: ended
-- include: tally

local seen = lane_seen(KEYS[9], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
redis.call('XLEN', KEYS[5])
redis.call('HLEN', KEYS[7])
local now = math.floor(now_us() / 1000)
local minute = minute_turned(KEYS[8], now)

local ids, tokens = {}, {}
for i = 3, #ARGV, 5 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[3], KEYS[4], ids, tokens)
local graves = redis.call('HMGET', KEYS[6], unpack(ids))
local gone, told, counts, old_graves = {}, {}, {}, {}
for i, id in ipairs(ids) do
  if marks[i] == 'k' then
    gone[#gone + 1] = id
    for counter in string.gmatch(ARGV[5 * i + 1], '%a+') do counts[counter] = (counts[counter] or 0) + 1 end
    if string.find(ARGV[5 * i + 1], '!', 1, true) then told[#told + 1] = id end
    keys_end(id, ARGV[5 * i + 2], 11)
    if graves[i] and redis.pcall('XRANGE', KEYS[5], graves[i], graves[i])[1] then
      old_graves[#old_graves + 1] = graves[i]
    end
  end
end

local waiting = 0
if #passes > 0 then
  redis.call('ZCARD', KEYS[10])
  waiting = redis.call('LLEN', KEYS[11])
end

write_when_full(KEYS[3])
if #gone > 0 then
  -- One tombstone a job, whatever a hand edit left in the index.
  if #old_graves > 0 then redis.call('XDEL', KEYS[5], unpack(old_graves)) end
  for i, id in ipairs(ids) do
    if marks[i] == 'k' then
      redis.call('HSET', KEYS[6], id, redis.call('XADD', KEYS[5], '*', 'i', id, 'p', ARGV[5 * i]))
    end
  end
  redis.call('XDEL', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
  redis.call('ZREM', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[4], unpack(gone))
  for _, free in ipairs(frees) do unique_free(free[1], free[2], now) end
  if #idems > 0 then
    -- include: idem
    -- include: idem_end
    for _, e in ipairs(idems) do idem_end(e[1], e[2], 0, KEYS[3], now) end
  end
  if #passes > 0 then
    -- include: head
    -- include: wake
    -- include: parked
    -- include: unique_pass
    unique_pass_all(passes, KEYS[2], KEYS[10], KEYS[11], waiting, now)
  end
  minute_note(KEYS[8], KEYS[7], minute)
  tally(KEYS[7], 'n:dead', #gone)
  for counter, count in pairs(counts) do tally(KEYS[7], 'n:' .. string.lower(counter), count) end
  ended_tell(ARGV[2], told)
end
if #alive > 0 then redis.call('HSET', KEYS[4], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[9], ARGV[1], answer)
return answer
