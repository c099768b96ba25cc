-- mend: look over a part of a queue, and put right what an eviction, a hand edit or
-- a lost tail left where no lease comes by. Each thing is judged in this moment, so
-- that a call may be sent again, or come late: it needs no lane.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] dead    stream of post-mortems
-- KEYS[8] index   hash, id -> entry of dead
-- KEYS[9] meta    hash
-- KEYS[10] minutes hash, the counters at the start of each minute
-- KEYS[11] done   hash, id -> record of a job that is over
-- KEYS[12] done_at sorted set, score = ms until which it is kept
-- ARGV[1] first   1 for the first call of a worker's look, which is not due if
--                 another worker has begun one 45 s ago or later
--
-- returns "<lost> <healed> <more> <id>…": these counters, 1 if there is more to look
-- at, and the ids of parked jobs that the script unpark is to look at
-- include: time
-- include: entry
-- include: full
-- include: graves
-- include: parked
-- include: tally

local us = now_us()
local now = math.floor(us / 1000)
local streamed, held = redis.call('XLEN', KEYS[1]), redis.call('HLEN', KEYS[2])
local waiting = redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4])
local running = redis.call('ZCARD', KEYS[5]) + redis.call('HLEN', KEYS[6])
local buried = redis.call('XLEN', KEYS[7])
local indexed = redis.call('HLEN', KEYS[8])
local done, placed = redis.call('HLEN', KEYS[11]), redis.call('ZCARD', KEYS[12])
local kept = redis.call('HMGET', KEYS[9], 'last', 'mend')
local last = string.match(kept[1] or '', '^%d+$')
local minute = minute_turned(KEYS[10], now)

-- The walk is shared by all workers: a fleet looks no more often than one does.
local begun, place_text = string.match(kept[2] or '', '^(%d+) ?(.*)$')
begun = tonumber(begun or '') or 0
local due = ARGV[1] ~= '1' or begun > now or now - begun >= 45000
if ARGV[1] == '1' then begun = now end
local part_s, at_text, skip = string.match(place_text or '', '^([ditrk]) (%S+) (%d+)$')
-- A place that a hand edit has made of something else would be an error in each call.
local right = part_s == 'd' and stream_id(at_text) or
  part_s and part_s ~= 'd' and string.match(at_text, '^%d+$') and #at_text <= 15
if not right or #skip > 15 then part_s, at_text, skip = 'd', '-', '0' end
if not due then part_s = '' end
skip = tonumber(skip)
local parked = {}
if due and ARGV[1] == '1' then
  parked = redis.call('ZRANGEBYSCORE', KEYS[3], parked_text, '(' .. num(parked_from + now - 45000), 'LIMIT', 0, 100)
end
local looked, bytes = 0, 0
local lost, healed = 0, 0
local graves, stale, times, runs, over = {}, {}, {}, {}, {}

-- Another one fits while few were looked at and little was read.
local function open()
  return looked < 200 and bytes < 1000000
end

-- The entries of dead come first: what the index had lost is in it again before the
-- index is judged. One by one, since a single one may have megabytes.
local function look_dead()
  while open() do
    local entry = redis.call('XRANGE', KEYS[7], at_text == '-' and '-' or '(' .. at_text, '+', 'COUNT', 1)[1]
    if not entry then return true end
    local entry_id = entry[1]
    at_text = entry_id
    looked = looked + 1
    bytes = bytes + #(entry[2][4] or '')
    local id = grave_owner(entry)
    if id and entry_id_valid(id) then
      local grave = redis.call('HGET', KEYS[8], id)
      if grave ~= entry_id and not lives(KEYS[1], KEYS[2], id) and not grave_is(KEYS[7], grave, id) then
        if not graves[id] then healed = healed + 1 end
        graves[id] = entry_id
      end
    end
  end
  return false
end

-- scan judges each pair of a hash or a sorted set. What this call is to remove is
-- no more in the page when the next one comes to its rest.
local function scan(read, judge)
  while open() do
    local page, gone = read(), 0
    for i = 2 * skip + 1, #page[2], 2 do
      if not open() then
        skip = (i - 1) / 2 - gone
        return false
      end
      looked = looked + 1
      if judge(page[2][i], page[2][i + 1]) then gone = gone + 1 end
    end
    at_text, skip = page[1], 0
    if at_text == '0' then return true end
  end
  return false
end

local function judge_index(id, grave)
  if graves[id] or stale[id] then return end
  local there, size = grave_is(KEYS[7], grave, id)
  bytes = bytes + size
  if there then return end
  stale[id] = true
  if lives(KEYS[1], KEYS[2], id) then healed = healed + 1 else lost = lost + 1 end
  return true
end

local function judge_due(id)
  if times[id] or redis.call('HEXISTS', KEYS[2], id) == 1 then return end
  times[id] = true
  if lives(KEYS[1], KEYS[2], id) then healed = healed + 1 else lost = lost + 1 end
  return true
end

-- A job that has no place either will get its lease back, and finds here what its
-- run had come to.
local function judge_run(id)
  if runs[id] or redis.call('ZSCORE', KEYS[5], id) then return end
  local waits = redis.call('ZSCORE', KEYS[3], id) or redis.call('ZSCORE', KEYS[4], id)
  if lives(KEYS[1], KEYS[2], id) then
    if not waits then return end
    healed = healed + 1
  elseif not times[id] then
    lost = lost + 1
  end
  runs[id] = true
  return true
end

-- A job that is over is neither alive nor dead, and has a record as long as it has a time.
local function judge_kept(id)
  if over[id] then return end
  if redis.call('HEXISTS', KEYS[11], id) == 1 and not lives(KEYS[1], KEYS[2], id) and
    redis.call('HEXISTS', KEYS[8], id) == 0 then return end
  over[id] = true
  healed = healed + 1
  return true
end

if part_s == 'd' and look_dead() then part_s, at_text = 'i', '0' end
if part_s == 'i' and scan(function() return redis.call('HSCAN', KEYS[8], at_text, 'COUNT', 100) end, judge_index) then part_s, at_text = 't', '0' end
if part_s == 't' and scan(function() return redis.call('ZSCAN', KEYS[3], at_text, 'COUNT', 100) end, judge_due) then part_s, at_text = 'r', '0' end
if part_s == 'r' and scan(function() return redis.call('HSCAN', KEYS[6], at_text, 'COUNT', 100) end, judge_run) then part_s, at_text = 'k', '0' end
if part_s == 'k' and scan(function() return redis.call('ZSCAN', KEYS[12], at_text, 'COUNT', 100) end, judge_kept) then part_s = '' end
if due and done > placed then -- some of them, without their records: HSCAN would read those
  for _, id in ipairs(redis.call('HRANDFIELD', KEYS[11], 200)) do
    if not over[id] and not redis.call('ZSCORE', KEYS[12], id) then
      over[id] = true
      healed = healed + 1
    end
  end
end

write_when_full(KEYS[5])
if due and streamed + held + waiting + running + buried + indexed + done + placed > 0 then
  place_text = part_s ~= '' and part_s .. ' ' .. at_text .. ' ' .. num(skip) or ''
  redis.call('HSET', KEYS[9], 'mend', num(begun) .. ' ' .. place_text)
end
if not last and streamed + held + buried > 0 then
  -- The hash was lost: ids must still rise above what the stream has seen.
  healed = healed + 1
  local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  last = math.max(us, tonumber(top and string.match(top[1], '^%d+') or '0'))
  redis.call('HSET', KEYS[9], 'last', num(last))
end
for id in pairs(stale) do redis.call('HDEL', KEYS[8], id) end
for id in pairs(times) do redis.call('ZREM', KEYS[3], id) end
for id in pairs(runs) do redis.call('HDEL', KEYS[6], id) end
for id in pairs(over) do
  redis.call('HDEL', KEYS[11], id)
  redis.call('ZREM', KEYS[12], id)
end
for id, entry in pairs(graves) do redis.call('HSET', KEYS[8], id, entry) end
if lost + healed > 0 then
  minute_note(KEYS[10], KEYS[9], minute)
  if lost > 0 then tally(KEYS[9], 'n:lost', lost) end
  if healed > 0 then tally(KEYS[9], 'n:healed', healed) end
end
local counts = redis.call('HMGET', KEYS[9], 'n:lost', 'n:healed')
return num(tonumber(counts[1] or '') or 0) .. ' ' .. num(tonumber(counts[2] or '') or 0) ..
  (part_s ~= '' and ' 1' or ' 0') .. (#parked > 0 and ' ' .. table.concat(parked, ' ') or '')
