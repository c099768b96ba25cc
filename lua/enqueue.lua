-- enqueue: add jobs, or replace those that wait; all of a call, or none.
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
-- KEYS[11..]      unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] n       number of jobs
-- ARGV[3..]       per job: low half of its id, record, and how it waits: "" for
--                 at once, or "<d|a> <ms> <priority> <unique> <d|s> <window>":
--                 delay or absolute time, the unique key as an index into
--                 KEYS[11..] (0: none), its mode and its window in ms. One word
--                 more says what becomes of a job that waits under the key: "r", it
--                 is replaced; "l", that too, and behind one that runs this one waits
--
-- returns "stale" | "<us> <marks> <holder>…": the microseconds of the first new
-- id (each next one is one more), and for each job "." new, "d" duplicate or "r"
-- duplicate that has replaced the one that waited, then the ids of those that stand
-- for the duplicates, in order
-- include: time
-- include: lane
-- include: head
-- include: runs
-- include: parked
-- include: unique_own
-- include: unique_take
-- include: wake
-- include: tally

local seen = lane_seen(KEYS[10], ARGV[1])
if seen then return seen end

local us = now_us()
local now = math.floor(us / 1000)
local ready_from = math.ceil(us / 1000)
local meta = redis.call('HMGET', KEYS[7], 'last', 'n:enqueued')
local minute = minute_turned(KEYS[8], now)
local waiting = redis.call('LLEN', KEYS[9])
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
    redis.call('ZCARD', KEYS[5])
    redis.call('HLEN', KEYS[6])
    break
  end
end

local first = us
local marks, holders = {}, {}
local fresh, held, due, prio, keys, taken = {}, {}, {}, {}, {}, {}
local moved, ready, newest = {}, 0, nil
local nearest
local second, second_text
for i = 1, tonumber(ARGV[2]) do
  local low_text, record, how = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local at_second = math.floor(us / 1000000)
  if at_second ~= second then second, second_text = at_second, num(at_second) end
  -- It is num(us), at half the price.
  local id = string.format('%s%06d-%s', second_text, us - second * 1000000, low_text)
  local kind, ms, priority, unique, mode, window, change
  local holder, claim, replaced, parked
  if how ~= '' then
    kind, ms, priority, unique, mode, window, change =
      string.match(how, '^(%a) (%d+) (%d) (%d+) (%a) (%d+) ?(%a?)$')
    ms, priority, unique = tonumber(ms), tonumber(priority), tonumber(unique)
    if unique > 0 then
      if not newest then
        newest = {} -- which job of the call is the last to replace, by key
        for later = i, tonumber(ARGV[2]) do
          local wait = ARGV[3 * later + 2]
          if (string.byte(wait, -1) or 0) > 57 then
            newest[KEYS[10 + tonumber(string.match(wait, '^%a %d+ %d (%d+)'))]] = later
          end
        end
      end
      local key = KEYS[10 + unique]
      claim = taken[key]
      -- In words of its own: it is the fault of this job alone, and not of the queue.
      if not claim and unique_mistyped(key) then
        return redis.error_reply(table.concat({ 'WRONGTYPE of the unique key', key }, ' '))
      end
      holder = claim and claim.id or unique_holder(key, KEYS[1], KEYS[2], KEYS[6], now)
      window = tonumber(window)
      local till = window > 0 and math.ceil(us / 1000) + window or 0
      if not holder then
        claim = { key = key, id = id, holder = id, mode = mode, till = till, target = id, new = true }
        taken[key] = claim
        keys[#keys + 1] = claim
      elseif change ~= '' then
        if not claim then
          -- include: unique_claim
          claim = unique_claim(key, holder, KEYS[1], KEYS[2], KEYS[3], KEYS[5], KEYS[6], now)
          taken[key] = claim
        end
        if claim.target then
          holder, replaced = claim.target, true
          if not claim.parked then claim.mode = mode end
        elseif claim.runs and change == 'l' then
          holder, parked = nil, true
          claim.target, claim.next_id, claim.parked, claim.new, claim.mode = id, id, true, true, 'd'
        end
        if claim.target then
          claim.till = math.max(claim.till, till)
          if not replaced or newest[key] == i and not claim.new then keys[#keys + 1] = claim end
        end
      end
      if not holder and (newest[key] or 0) > i then
        -- What comes later in the call replaces it before it is written.
        record = ARGV[3 * newest[key] + 1]
        kind, ms, priority = string.match(ARGV[3 * newest[key] + 2], '^(%a) (%d+) (%d)')
        ms, priority = tonumber(ms), tonumber(priority)
      end
      replaced = replaced and (newest[key] == i and not claim.new and 'now' or 'r')
    end
  end
  local at = ready_from
  if kind then at = kind == 'a' and ms or ready_from + ms end
  local later = kind and at > now and (kind == 'a' or ms > 0)
  if holder then
    marks[i] = replaced and 'r' or 'd'
    holders[#holders + 1] = holder
    if replaced == 'now' then
      -- include: head_since
      if not later then at = claim.since or now end
      held[#held + 1] = holder
      held[#held + 1] = head_since(head_due(record, at), now)
      if not claim.parked then
        moved[#moved + 1] = holder
        local to, score = due, num(at)
        if later then
          if not nearest or at < nearest then nearest = at end
        else
          ready = ready + 1
          if priority > 0 then to, score = prio, prio_text(priority, at) end
        end
        to[#to + 1] = score
        to[#to + 1] = holder
      end
    end
  else
    marks[i] = '.'
    us = us + 1
    if parked then
      held[#held + 1] = id
      held[#held + 1] = head_due(record, later and at or now)
      due[#due + 1] = num(parked_from + now)
      due[#due + 1] = id
    elseif later then
      held[#held + 1] = id
      held[#held + 1] = head_due(record, at)
      due[#due + 1] = num(at)
      due[#due + 1] = id
      if not nearest or at < nearest then nearest = at end
    elseif kind and priority > 0 then
      ready = ready + 1
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
if #moved > 0 then
  redis.call('XDEL', KEYS[1], unpack(moved))
  redis.call('ZREM', KEYS[3], unpack(moved))
  redis.call('ZREM', KEYS[4], unpack(moved))
  redis.call('ZREM', KEYS[5], unpack(moved))
  redis.call('HDEL', KEYS[6], unpack(moved))
end
if #due > 0 then redis.call('ZADD', KEYS[3], unpack(due)) end
if #prio > 0 then redis.call('ZADD', KEYS[4], unpack(prio)) end
for _, claim in ipairs(keys) do
  redis.call('SET', claim.key, unique_text(claim.holder, claim.mode, claim.till, claim.next_id))
end
minute_note(KEYS[8], KEYS[7], minute)
if added > 0 then
  local enqueued_text = tally_sum(meta[2], added)
  redis.call('HSET', KEYS[7], 'last', num(us - 1), 'n:enqueued', enqueued_text or meta[2])
  if not enqueued_text then tally(KEYS[7], 'n:enqueued', added) end
end
if #holders > 0 then tally(KEYS[7], 'n:duplicate', #holders) end
healed = healed + unique_orphans
if healed > 0 then tally(KEYS[7], 'n:healed', healed) end

ready = ready + #fresh / 2
if nearest and wake_due(KEYS[3], nearest, now) then ready = ready + 1 end
wake_push(KEYS[9], ready, waiting)

local answer = num(first) .. ' ' .. table.concat(marks)
if #holders > 0 then answer = answer .. ' ' .. table.concat(holders, ' ') end
lane_keep(KEYS[10], ARGV[1], answer)
return answer
