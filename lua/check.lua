-- check: what is wrong with ids and unique keys, each looked at in one moment.
-- Reads only.
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
-- KEYS[10] done   hash, id -> record of a job that is over
-- KEYS[11] done_at sorted set, score = ms until which it is kept
-- KEYS[12..]      unique keys
-- ARGV[1..]       ids
--
-- returns a text per id, then one per unique key; "" where nothing is wrong
-- include: time
-- include: head
-- include: runs
-- include: parked
-- include: unique_own
-- include: unique_take

local now = math.floor(now_us() / 1000)
local cursor_id = redis.call('HGET', KEYS[9], 'cursor') or '0-0'

-- Ids rise with their first halves, of which no two are alike.
local function behind_cursor(id)
  local us, cursor_us = string.match(id, '^%d+'), string.match(cursor_id, '^%d+')
  if not us or not cursor_us then return false end
  return tonumber(us) <= tonumber(cursor_us)
end

local function wrong(id)
  local fresh = string.find(id, '^%d+%-%d+$') and #redis.call('XRANGE', KEYS[1], id, id) > 0
  local held = redis.call('HEXISTS', KEYS[2], id) == 1
  local due = redis.call('ZSCORE', KEYS[3], id)
  local prio = redis.call('ZSCORE', KEYS[4], id)
  local lease = redis.call('ZSCORE', KEYS[5], id)
  local entry = redis.call('HGET', KEYS[6], id)
  local grave = redis.call('HGET', KEYS[8], id)
  local kept = redis.call('HEXISTS', KEYS[10], id) == 1
  local till = redis.call('ZSCORE', KEYS[11], id)
  local homes = (fresh and 1 or 0) + (held and 1 or 0) + (grave and 1 or 0)
  local places = (due and 1 or 0) + (prio and 1 or 0) + (lease and 1 or 0)
  if kept and not till then return 'is over and kept, and nothing says until when' end
  if till and not kept then return 'is over and to be kept, and its record is missing' end
  if kept and homes > 0 then return 'is over and kept, and has another record' end
  if homes > 1 then return 'has more than one record' end
  if homes == 0 and places > 0 then return 'has a place and no record' end
  if homes == 0 and entry then return 'has a run entry and no record' end
  if homes == 0 then return '' end
  if grave and (places > 0 or entry) then return 'is dead and has a place among the living' end
  if grave and #redis.call('XRANGE', KEYS[7], grave, grave) == 0 then
    return 'is in the index of the dead, and its post-mortem is missing'
  end
  if grave then return '' end
  if places > 1 then return 'is in more than one state' end
  if lease and not run_read(entry) then return 'has a lease and no run entry' end
  if entry and not lease then return 'has a run entry and no lease' end
  if held and places == 0 then return 'has a record and is in no state' end
  if fresh and (due or prio) then return 'is fresh and waits in a sorted set' end
  if fresh and not lease and behind_cursor(id) then return 'lies behind the cursor without a lease' end
  return ''
end

local reply = {}
for i, id in ipairs(ARGV) do reply[i] = wrong(id) end
for i = 12, #KEYS do
  local mistyped = unique_mistyped(KEYS[i])
  local id, _, till, next_id, text = nil, nil, nil, nil, ''
  if not mistyped then id, _, till, next_id = unique_read(KEYS[i]) end
  if mistyped then
    text = 'is of a wrong type'
  elseif not id then
    if redis.call('EXISTS', KEYS[i]) == 1 then text = 'names no job' end
  elseif next_id and not is_parked(redis.call('ZSCORE', KEYS[3], next_id)) then
    text = 'names a job that does not wait behind its holder'
  elseif till < now then
    local alive = redis.call('HEXISTS', KEYS[2], id) == 1 or
      string.find(id, '^%d+%-%d+$') and #redis.call('XRANGE', KEYS[1], id, id) > 0
    -- A key without a job goes with the next enqueue, but it should not be. One whose
    -- window has just ended may be there yet: Redis has been told to remove it.
    if not alive and redis.call('PTTL', KEYS[i]) == -1 then text = 'is held by a job that is over' end
  elseif till > now + 1000 and redis.call('PTTL', KEYS[i]) == -1 and
    redis.call('HEXISTS', KEYS[2], id) == 0 and #redis.call('XRANGE', KEYS[1], id, id) == 0 then
    text = 'has a window, no job and no expiry'
  end
  reply[#reply + 1] = text
end
return reply
