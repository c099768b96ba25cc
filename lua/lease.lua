-- lease: take jobs that can run now, from four sources in turn, so that no
-- source starves another: leases that ran out or were given back, due jobs,
-- priorities, and fresh entries after the cursor.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record of every other live job
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms; 0 = given back
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] meta    hash
-- KEYS[8] minutes hash, the counters at the start of each minute
-- KEYS[9] wake    list of tokens
-- KEYS[10] lane   the caller's lane
-- ARGV[1] seq         sequence in the lane
-- ARGV[2] n           jobs wanted, 1 to 500
-- ARGV[3] visibility  ms, for jobs that have none of their own
-- ARGV[4] nonce       of the token
-- ARGV[5] max         crashes, the least that may apply to a job without its own
-- ARGV[6] suspects    1 if the caller may take a suspect
-- ARGV[7] expired     1 if it may take expired leases
-- ARGV[8] low         low half of an id, for an entry whose id is no job's
--
-- returns {"stale"} | {now ms, ms to the next possible work or -1, token, then
-- per job: id, record, crashes, flags: "c" to be cancelled, "x" its lease had
-- run out, "s" a suspect; then " <percent> <note>" if a run before told of progress}
-- include: time
-- include: lane
-- include: head
-- include: runs
-- include: wake
-- include: full
-- include: entry
-- include: records
-- include: pick
-- include: wide
-- include: tally

local seen = lane_seen(KEYS[10], ARGV[1])
if seen == 'stale' then return { 'stale' } end
local us = now_us()
local now = math.floor(us / 1000)

local next_text, given_token, list = string.match(seen or '', '^(%-?%d+) (%S+) ?(.*)$')
if list then
  -- The call ran before; its jobs are those that it still holds.
  reply[1], reply[2], reply[3] = num(now), next_text, given_token
  for mark_s, crashes_text, id in string.gmatch(list, '(%a*)(%d+):(%S+)') do
    local held_token, _, flags_s, _, progress_text = run_read(redis.call('HGET', KEYS[6], id))
    local record = held_token == given_token and records(KEYS[1], KEYS[2], { id })[1]
    if record then
      local cancel_s = string.find(flags_s, 'c', 1, true) and 'c' or ''
      for _, part in ipairs({ id, record, crashes_text, cancel_s .. mark_s .. progress_text }) do reply[#reply + 1] = part end
    end
  end
  return reply
end

local meta = redis.call('HMGET', KEYS[7], 'cursor', 'turn', 'fence', 'paused', 'swept', 'n:started')
local total = redis.call('XLEN', KEYS[1]) + redis.call('HLEN', KEYS[2])
local due_count, prio_count = redis.call('ZCARD', KEYS[3]), redis.call('ZCARD', KEYS[4])
local lease_count = redis.call('ZCARD', KEYS[5])
redis.call('HLEN', KEYS[6])
local waiting = redis.call('LLEN', KEYS[9])
local minute = minute_turned(KEYS[8], now)
local cursor_id = stream_id(meta[1]) or false
local turn = tonumber(string.match(meta[2] or '', '^[0-3]$') or '0')
local n = math.min(tonumber(ARGV[2]), 500)
default_visibility, default_max = tonumber(ARGV[3]), tonumber(ARGV[5])
suspects = tonumber(ARGV[6])
local fence_us = math.max(us, tonumber(string.match(meta[3] or '', '^%d+$') or '0') + 1)
local fence_text = num(fence_us)
token = fence_text .. '-' .. ARGV[4]
-- A lease never ends before its time: its start is rounded up.
local leased_from = math.ceil(us / 1000)

write_when_full(KEYS[5])
local paused = tonumber(string.match(meta[4] or '', '^%d+$') or '0')
if paused > now then
  redis.call('DEL', KEYS[9])
  local answer = num(paused - now) .. ' ' .. token
  lane_keep(KEYS[10], ARGV[1], answer)
  return { num(now), num(paused - now), token }
end

local skipped, expired_at, due_at, prio_at = 0, 0, 0, 0
local due_gone, due_late, prio_gone, prio_late = {}, {}, {}, {}
-- Whether the last look at a source ended before its end: there may be more behind
-- what was passed over.
local expired_cut, due_cut, prio_cut = false, false, false
-- Those in the stream that nobody holds, but for what a hand edit cost its lease.
local backlog = total - due_count - prio_count - lease_count

local renamed, passed = {}, 0
local function take_fresh(share)
  while share > 0 and passed < 500 and pick_open() do
    local count = page_size(share, picked, bytes)
    local entries = redis.call('XRANGE', KEYS[1], cursor_id and '(' .. cursor_id or '-', '+', 'COUNT', count)
    if #entries == 0 then return end
    local ids = {}
    for i, entry in ipairs(entries) do ids[i] = entry[1] end
    -- Once the hash was lost the cursor starts anew, before entries being run.
    local leased = lease_count > 0 and redis.call('ZMSCORE', KEYS[5], unpack(ids)) or {}
    for i, entry in ipairs(entries) do
      if not pick_open() then return end
      local id, record = entry[1], entry_record(entry)
      cursor_id = id
      if leased[i] then
        passed = passed + skip_cost(record)
      else
        if not entry_id_valid(id) then
          -- It gets an id, and so an address to be buried under.
          local old_id = id
          id = num(fence_us + #renamed) .. '-' .. ARGV[8]
          renamed[#renamed + 1] = { old_id, id, record }
        end
        if pick(id, record, false, false, leased_from) then share = share - 1 end
      end
    end
    if #entries < count then return end
  end
end

local slots = {}
if lease_count > 0 and ARGV[7] == '1' then
  slots[1] = function(share)
    local left = share + 64
    expired_cut = false
    while share > 0 and left > 0 and pick_open() do
      local count = math.min(page_size(share, picked, bytes), left)
      local page = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', num(now), 'WITHSCORES',
        'LIMIT', expired_at, count)
      if #page == 0 then return end
      local ids = {}
      for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
      local found = records(KEYS[1], KEYS[2], ids)
      local entries = redis.call('HMGET', KEYS[6], unpack(ids))
      for i, id in ipairs(ids) do
        if not pick_open() then return end
        left = left - skip_cost(found[i] or '')
        expired_at = expired_at + 1
        if not found[i] then
          dropped[#dropped + 1] = id
        elseif pick(id, found[i], entries[i], tonumber(page[2 * i]) ~= 0, leased_from) then
          share = share - 1
        else
          skipped = skipped + 1
          -- To the back of those that ran out, so that it hides nobody.
          if tonumber(page[2 * i]) ~= 0 then
            lease_args[#lease_args + 1] = num(now)
            lease_args[#lease_args + 1] = id
          end
        end
      end
    end
    expired_cut = share > 0 and left <= 0
  end
end
local take_waiting
if due_count + prio_count > 0 then
  -- take_waiting takes from due or prio, whose ids all have records in held. Those
  -- that were passed over are late: in due they go to the back, and hide nobody. It
  -- returns where the next look begins, and whether this one was cut short.
  take_waiting = function(key, to, at, gone, late, share)
    local left = share + 64
    while share > 0 and left > 0 and pick_open() do
      local count = math.min(page_size(share, picked, bytes), left)
      local ids = redis.call('ZRANGEBYSCORE', key, '-inf', to, 'LIMIT', at, count)
      if #ids == 0 then return at, false end
      local found = redis.call('HMGET', KEYS[2], unpack(ids))
      local leased = redis.call('ZMSCORE', KEYS[5], unpack(ids))
      for i, id in ipairs(ids) do
        if not pick_open() then return at, false end
        left = left - skip_cost(found[i] or '')
        at = at + 1
        if not found[i] then
          dropped[#dropped + 1] = id
          gone[#gone + 1] = id
        elseif leased[i] then
          gone[#gone + 1] = id
        elseif pick(id, found[i], false, false, leased_from) then
          gone[#gone + 1] = id
          share = share - 1
        else
          skipped = skipped + 1
          late[#late + 1] = num(now)
          late[#late + 1] = id
        end
      end
    end
    return at, share > 0 and left <= 0
  end
end
if due_count > 0 then
  -- A due job with a priority waits among the priorities from now on.
  local moved, ranks, looked, size, more = {}, {}, 0, 0, true
  while more and looked < n + 16 and size < max_bytes do
    local count = page_size(n + 16 - looked, looked, size)
    local page = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', num(now), 'WITHSCORES', 'LIMIT', looked, count)
    local ids = {}
    for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
    local found = #ids > 0 and redis.call('HMGET', KEYS[2], unpack(ids))
    for i, id in ipairs(ids) do
      local record = found[i] or ''
      local priority = head_read(record)
      size = size + #record
      if priority > 0 then
        moved[#moved + 1] = id
        ranks[#ranks + 1] = prio_text(priority, tonumber(page[2 * i]))
        ranks[#ranks + 1] = id
      end
    end
    looked = looked + #ids
    more = #ids == count
  end
  if #moved > 0 then
    redis.call('ZREM', KEYS[3], unpack(moved))
    redis.call('ZADD', KEYS[4], unpack(ranks))
    prio_count = prio_count + #moved
  end
  if more or looked > #moved then
    slots[2] = function(share)
      due_at, due_cut = take_waiting(KEYS[3], num(now), due_at, due_gone, due_late, share)
    end
  end
end
if prio_count > 0 then
  slots[3] = function(share)
    prio_at, prio_cut = take_waiting(KEYS[4], '+inf', prio_at, prio_gone, prio_late, share)
  end
end
if total > 0 then slots[4] = take_fresh end

-- Each has the first turn in one call of four, whichever others there are.
local sources = {}
for i = 1, 4 do sources[#sources + 1] = slots[(turn + i) % 4 + 1] end

for round = 1, 2 do
  for i = 1, #sources do
    local left = n - picked
    if left > 0 and pick_open() then
      local share = round == 1 and math.ceil(left / (#sources + 1 - i)) or left
      sources[i](share)
    end
  end
end

if minute and picked + #dropped > 0 then
  minute_note(KEYS[8], KEYS[7], minute)
  redis.call('HSET', KEYS[7], wide_text, '')
  redis.call('HDEL', KEYS[7], wide_text)
end
for _, entry in ipairs(renamed) do
  redis.call('XDEL', KEYS[1], entry[1])
  redis.call('HSET', KEYS[2], entry[2], entry[3])
end
if #dropped > 0 then
  redis.call('ZREM', KEYS[5], unpack(dropped))
  redis.call('HDEL', KEYS[6], unpack(dropped))
  tally(KEYS[7], 'n:lost', #dropped)
end
if #due_gone > 0 then redis.call('ZREM', KEYS[3], unpack(due_gone)) end
if #due_late > 0 then redis.call('ZADD', KEYS[3], unpack(due_late)) end
if prio_cut then
  -- Whatever their number, they rank before the others: they come again in a second.
  for i = 1, #prio_late, 2 do
    prio_late[i] = num(now + 1000)
    prio_gone[#prio_gone + 1] = prio_late[i + 1]
  end
  if #prio_late > 0 then redis.call('ZADD', KEYS[3], unpack(prio_late)) end
end
if #prio_gone > 0 then redis.call('ZREM', KEYS[4], unpack(prio_gone)) end
local widens = lease_count < 16 and lease_count + picked >= 16
if widens then
  redis.call('HSET', KEYS[6], wide_text, '')
  redis.call('ZADD', KEYS[5], '0', wide_text)
end
if #run_args > 0 then redis.call('HSET', KEYS[6], unpack(run_args)) end
if #lease_args > 0 then redis.call('ZADD', KEYS[5], unpack(lease_args)) end
if widens then
  redis.call('HDEL', KEYS[6], wide_text)
  redis.call('ZREM', KEYS[5], wide_text)
end
if picked > 0 or cursor_id ~= meta[1] then
  local started_text = tally_sum(meta[6], picked)
  redis.call('HSET', KEYS[7], 'cursor', cursor_id or '0-0', 'turn', string.sub('1230', turn + 1, turn + 1),
    'fence', #renamed > 1 and num(fence_us + #renamed - 1) or fence_text,
    'n:started', started_text or meta[6])
  if not started_text then tally(KEYS[7], 'n:started', picked) end
  if crashed > 0 then tally(KEYS[7], 'n:crashed', crashed) end
end

local full = picked >= n or not pick_open()
-- Once no fresh job is left, records without a place show in the numbers. A queue
-- that always has some is looked over a little, in one call of 16.
local missing, healed = 0, 0
if not full and passed < 500 then
  missing = redis.call('XLEN', KEYS[1]) + redis.call('HLEN', KEYS[2]) - redis.call('ZCARD', KEYS[3]) -
    redis.call('ZCARD', KEYS[4]) - redis.call('ZCARD', KEYS[5])
end
local look = missing > 0 and 500 or full and us % 16 == 0 and 8 or 0
if look > 0 then
  -- include: heal
  local swept_id = stream_id(meta[5]) or ''
  local swept
  swept, healed = heal(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], cursor_id, swept_id, look)
  missing = missing - healed
  if swept ~= (meta[5] or '') then redis.call('HSET', KEYS[7], 'swept', swept) end
  if healed > 0 then
    if picked + #dropped == 0 then minute_note(KEYS[8], KEYS[7], minute) end
    tally(KEYS[7], 'n:healed', healed)
  end
end

-- What is next: for the caller if it has slots left, for the others if not.
local after = '(' .. num(now)
local soonest = due_count > 0 and redis.call('ZRANGEBYSCORE', KEYS[3], after, '(1000000000000000', 'WITHSCORES', 'LIMIT', 0, 1)[2] -- none that is parked
soonest = soonest and tonumber(soonest)
local tokens = healed
if full and backlog >= picked + 2 then
  tokens = 2
elseif full then
  local ready = redis.call('ZCOUNT', KEYS[5], '-inf', num(now)) - skipped
  if ready < 0 then ready = 0 end
  if ready < 2 then ready = ready + redis.call('ZCOUNT', KEYS[3], '-inf', num(now)) end
  if ready < 2 then ready = ready + redis.call('ZCARD', KEYS[4]) end
  if ready < 2 then
    ready = ready + redis.call('XLEN', KEYS[1]) + redis.call('HLEN', KEYS[2]) -
      redis.call('ZCARD', KEYS[5]) - redis.call('ZCARD', KEYS[3]) - redis.call('ZCARD', KEYS[4])
  end
  if ready < 1 and soonest and soonest <= now + 10000 then ready = 1 end
  tokens = ready
else
  local lapse = redis.call('ZRANGEBYSCORE', KEYS[5], after, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if lapse and (not soonest or tonumber(lapse) < soonest) then soonest = tonumber(lapse) end
end
if waiting > tokens then
  redis.call('DEL', KEYS[9])
  waiting = 0
end
wake_push(KEYS[9], tokens - waiting, waiting)
-- What was passed over for good may have hidden work.
if not full and (#dropped > 0 or healed > 0 or passed >= 500) then soonest = now end
local hidden = expired_cut or due_cut or prio_cut
if not full and hidden and (not soonest or soonest > now + 100) then soonest = now + 100 end
if missing > 0 and (not soonest or soonest > now + 1000) then soonest = now + 1000 end
next_text = soonest and num(soonest - now) or '-1'

reply[1], reply[2], reply[3] = num(now), next_text, token
lane_keep(KEYS[10], ARGV[1], next_text .. ' ' .. token .. ' ' .. table.concat(kept, ' '))
return reply
