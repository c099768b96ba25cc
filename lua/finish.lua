-- finish: settle for jobs that leave something: a record that is kept for a while, jobs
-- that follow, or both.
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
-- KEYS[12] prio   sorted set, score = priority and ms
-- KEYS[13..]      unique and idempotency keys, those of the jobs that follow too
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] channel on which the ends of kept jobs are told
-- ARGV[3..]       per job: id, token, counter and the indexes of its keys in KEYS[13..]
--                 as settle has them, the record to keep, and for how many ms (0: it is
--                 not); the number of jobs that follow, and for each of these: low half
--                 of its id, record, and how it waits, as enqueue has them
--
-- returns "stale" | a letter per job: "k" ended, "c" to be cancelled instead of
-- discarded (nothing done; the caller settles it so), "l" lost; if jobs have followed,
-- then " " and what enqueue would answer of them
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
local us = now_us()
local now = math.floor(us / 1000)
local minute = minute_turned(KEYS[6], now)

local ids, tokens, places, at = {}, {}, {}, 3
while ARGV[at] do
  ids[#ids + 1] = ARGV[at]
  tokens[#tokens + 1] = ARGV[at + 1]
  places[#places + 1] = at
  at = at + 7 + 3 * tonumber(ARGV[at + 6])
end
local marks, alive = fence(KEYS[3], KEYS[4], ids, tokens)
local ended, counts, told, bodies, times, list = {}, {}, {}, {}, {}, {}
for i, id in ipairs(ids) do
  local from = places[i]
  local counter, word, kept_record, ms = ARGV[from + 2], ARGV[from + 3], ARGV[from + 4], tonumber(ARGV[from + 5])
  -- What is done is done, whoever has cancelled it.
  if marks[i] == 'c' and counter ~= 'discarded' then marks[i] = 'k' end
  if marks[i] == 'k' then
    ended[#ended + 1] = id
    counts[counter] = (counts[counter] or 0) + 1
    if word ~= '0' then keys_end(id, word, 12) end
    if ms > 0 then
      told[#told + 1] = id
      bodies[#bodies + 1] = id
      bodies[#bodies + 1] = kept_record
      times[#times + 1] = num(now + ms)
      times[#times + 1] = id
    end
    for word_at = from + 7, (places[i + 1] or at) - 1 do list[#list + 1] = ARGV[word_at] end
  end
end
local stale = kept_stale(KEYS[11], #told, now, 2 * #told + 16)

local answer = table.concat(marks)
local follow, follow_claim, follow_count
if #list > 0 then
  -- include: head
  -- include: parked
  -- include: unique_take
  -- include: wake
  -- include: add
  local ending = {}
  for _, id in ipairs(ended) do ending[id] = true end
  for i = 3, #list, 3 do
    -- A key that something else has made must not hold up the end of the job: without
    -- it, its follow-up is one too many at the worst.
    local unique = tonumber(string.match(list[i], '^%a %d+ %d (%d+)') or '0')
    if unique > 0 and unique_mistyped(KEYS[12 + unique]) then
      list[i] = string.gsub(list[i], '^(%a %d+ %d )%d+', '%10')
    end
  end
  local keys = { jobs = KEYS[1], held = KEYS[2], due = KEYS[8], prio = KEYS[12], leases = KEYS[3],
    runs = KEYS[4], meta = KEYS[5], wake = KEYS[9], unique = 12 }
  local meta = redis.call('HMGET', KEYS[5], 'last', 'n:enqueued')
  local plan = add_plan(keys, list, 1, #list / 3, us, meta[1], ending)
  if type(plan) == 'string' then return redis.error_reply(plan) end
  follow = function() add_jobs(keys, plan) end
  follow_claim = function() add_claims(plan) end
  follow_count = function()
    plan.waiting = redis.call('LLEN', KEYS[9])
    add_count(keys, plan, meta[2])
  end
  answer = answer .. ' ' .. num(plan.first) .. ' ' .. table.concat(plan.marks)
  if #plan.holders > 0 then answer = answer .. ' ' .. table.concat(plan.holders, ' ') end
end

local waiting = 0
if #passes > 0 then
  redis.call('ZCARD', KEYS[8])
  waiting = redis.call('LLEN', KEYS[9])
end

write_when_full(KEYS[3])
if #ended > 0 then
  -- What a job leaves is there before it goes. Who may not write it, or may not end a job,
  -- is refused before either: without a change, or what follows would be lost, or be added
  -- with each call that is sent again.
  redis.call('HDEL', KEYS[4], 'none')
  redis.call('XDEL', KEYS[1], '0-1')
  redis.call('ZADD', KEYS[3], 'XX', 0, 'none')
  redis.call('HSET', KEYS[4], ended[1], redis.call('HGET', KEYS[4], ended[1]))
  if follow then follow() end
  if #told > 0 then kept_write(KEYS[10], KEYS[11], stale, bodies, times) end
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
  if follow then follow_claim() end
  minute_note(KEYS[6], KEYS[5], minute)
  for counter, count in pairs(counts) do
    tally(KEYS[5], 'n:' .. string.lower(counter), count)
    if counter == 'skipped' then tally(KEYS[5], 'n:done', count) end
  end
  if follow then follow_count() end
  ended_tell(ARGV[2], told)
end
if #alive > 0 then redis.call('HSET', KEYS[4], unpack(alive)) end
lane_keep(KEYS[7], ARGV[1], answer)
return answer
