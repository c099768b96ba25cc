-- enqueue: add jobs; all of a call, or none.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record of every other live job
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] runs    hash, id -> run entry
-- KEYS[6] meta    hash
-- KEYS[7] minutes hash, the counters at the start of each minute
-- KEYS[8] wake    list of tokens
-- KEYS[9] lane    the caller's lane
-- KEYS[10..]      unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] n       number of jobs
-- ARGV[3..]       per job: low half of its id, record, and how it waits: "" for
--                 at once, or "<d|a> <ms> <priority> <unique> <d|s> <window>":
--                 delay or absolute time, the unique key as an index into
--                 KEYS[10..] (0: none), its mode and its window in ms
--
-- returns "stale" | "<us> <marks> <holder>…": the microseconds of the first new
-- id (each next one is one more), and for each job "." new or "d" duplicate,
-- then the holders of the duplicates in order
-- include: time
-- include: lane
-- include: head
-- include: runs
-- include: unique_own
-- include: unique_take
-- include: wake
-- include: tally

local seen = lane_seen(KEYS[9], ARGV[1])
if seen then return seen end

local us = now_us()
local now = math.floor(us / 1000)
local ready_from = math.ceil(us / 1000)
local meta = redis.call('HMGET', KEYS[6], 'last', 'n:enqueued')
local minute = minute_turned(KEYS[7], now)
local waiting = redis.call('LLEN', KEYS[8])
local last = tonumber(string.match(meta[1] or '', '^%d+$') or '')
local healed = 0
if not last then
  -- The hash was lost: ids must still rise above what the stream has seen.
  if redis.call('XLEN', KEYS[1]) + redis.call('HLEN', KEYS[2]) > 0 then healed = 1 end
  local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
  last = tonumber(top[1] and string.match(top[1][1], '^%d+') or '0')
end
us = math.max(us, last + 1)
-- Above 2^53 two ids would be one. The clock gets there in the year 2255.
if us > 9007199254740000 then return redis.error_reply('ERR pawl: the last id is of the year 2255') end

-- Jobs that only enter the stream need no look at the other keys: an XADD to
-- anything else is refused, and is the first write.
for i = 5, #ARGV, 3 do
  if ARGV[i] ~= '' then
    redis.call('XLEN', KEYS[1])
    redis.call('HLEN', KEYS[2])
    redis.call('ZCARD', KEYS[3])
    redis.call('ZCARD', KEYS[4])
    redis.call('HLEN', KEYS[5])
    break
  end
end

local first = us
local marks, holders = {}, {}
local fresh, held, due, prio, keys, taken = {}, {}, {}, {}, {}, {}
local nearest
local second, second_text
for i = 1, tonumber(ARGV[2]) do
  local low_text, record, how = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local at_second = math.floor(us / 1000000)
  if at_second ~= second then second, second_text = at_second, num(at_second) end
  -- It is num(us), at half the price.
  local id = string.format('%s%06d-%s', second_text, us - second * 1000000, low_text)
  local kind, ms, priority, unique, mode, window
  local holder
  if how ~= '' then
    kind, ms, priority, unique, mode, window =
      string.match(how, '^(%a) (%d+) (%d) (%d+) (%a) (%d+)$')
    ms, priority, unique = tonumber(ms), tonumber(priority), tonumber(unique)
    if unique > 0 then
      local key = KEYS[9 + unique]
      holder = taken[key] or unique_holder(key, KEYS[1], KEYS[2], KEYS[5], now)
      if not holder then
        taken[key] = id
        window = tonumber(window)
        local till = window > 0 and math.ceil(us / 1000) + window or 0
        keys[#keys + 1] = { key, unique_text(id, mode, till) }
      end
    end
  end
  if holder then
    marks[i] = 'd'
    holders[#holders + 1] = holder
  else
    marks[i] = '.'
    us = us + 1
    local at = ready_from
    if how ~= '' then at = kind == 'a' and ms or ready_from + ms end
    if at > now and how ~= '' and (kind == 'a' or ms > 0) then
      held[#held + 1] = id
      held[#held + 1] = head_due(record, at)
      due[#due + 1] = num(at)
      due[#due + 1] = id
      if not nearest or at < nearest then nearest = at end
    elseif how ~= '' and priority > 0 then
      held[#held + 1] = id
      held[#held + 1] = head_due(record, now)
      prio[#prio + 1] = prio_text(priority, now)
      prio[#prio + 1] = id
    else
      fresh[#fresh + 1] = id
      fresh[#fresh + 1] = record
    end
  end
end

local added = us - first
for i = 1, #fresh, 2 do
  redis.call('XADD', KEYS[1], fresh[i], 'r', fresh[i + 1])
end
if #held > 0 then redis.call('HSET', KEYS[2], unpack(held)) end
if #due > 0 then redis.call('ZADD', KEYS[3], unpack(due)) end
if #prio > 0 then redis.call('ZADD', KEYS[4], unpack(prio)) end
for _, entry in ipairs(keys) do
  redis.call('SET', entry[1], entry[2])
end
minute_note(KEYS[7], KEYS[6], minute)
if added > 0 then
  local enqueued_text = tally_sum(meta[2], added)
  redis.call('HSET', KEYS[6], 'last', num(us - 1), 'n:enqueued', enqueued_text or meta[2])
  if not enqueued_text then tally(KEYS[6], 'n:enqueued', added) end
end
if #holders > 0 then tally(KEYS[6], 'n:duplicate', #holders) end
healed = healed + unique_orphans
if healed > 0 then tally(KEYS[6], 'n:healed', healed) end

local ready = (#fresh + #prio) / 2
if nearest and wake_due(KEYS[3], nearest, now) then ready = ready + 1 end
wake_push(KEYS[8], ready, waiting)

local answer = num(first) .. ' ' .. table.concat(marks)
if #holders > 0 then answer = answer .. ' ' .. table.concat(holders, ' ') end
lane_keep(KEYS[9], ARGV[1], answer)
return answer
