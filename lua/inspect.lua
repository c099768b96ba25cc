-- inspect: where a job is, and its record. Reads only.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] dead    stream of post-mortems
-- KEYS[8] index   hash, id -> entry of dead
-- KEYS[9] done    hash, id -> record of a job that is over
-- KEYS[10] done_at sorted set, score = ms until which it is kept
-- ARGV[1] id
--
-- returns {state, record, lease deadline ms or due ms or entry of dead or ms until
-- which it is kept or "", run entry or "", now ms}; state is ready, delayed, running,
-- parked, dead, done (over in any way, and kept), lost (a record that is in no state)
-- or missing
-- include: time
-- include: entry
-- include: parked

local id = ARGV[1]
local now = math.floor(now_us() / 1000)
local now_text = num(now)
local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
local record = entry and entry_record(entry) or redis.call('HGET', KEYS[2], id)
if not record then
  local grave = redis.call('HGET', KEYS[8], id)
  local dead = grave and redis.call('XRANGE', KEYS[7], grave, grave)[1]
  if dead and dead[2][3] == 'p' then return { 'dead', dead[2][4], grave, '', now_text } end
  local till = redis.call('ZSCORE', KEYS[10], id)
  local kept_record = till and tonumber(till) > now and redis.call('HGET', KEYS[9], id)
  if kept_record then return { 'done', kept_record, till, '', now_text } end
  return { 'missing', '', '', '', now_text }
end
local run = redis.call('HGET', KEYS[6], id) or ''
local deadline = redis.call('ZSCORE', KEYS[5], id)
if deadline then
  local state = tonumber(deadline) > now and 'running' or 'ready'
  return { state, record, deadline, run, now_text }
end
local due = redis.call('ZSCORE', KEYS[3], id)
if is_parked(due) then return { 'parked', record, '', run, now_text } end
if due then
  return { tonumber(due) > now and 'delayed' or 'ready', record, due, run, now_text }
end
if entry or redis.call('ZSCORE', KEYS[4], id) then return { 'ready', record, '', run, now_text } end
return { 'lost', record, '', run, now_text }
