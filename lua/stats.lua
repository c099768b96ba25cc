-- stats: one look at a queue. Reads only, and O(log n).
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] dead    stream of post-mortems
-- KEYS[7] meta    hash
-- KEYS[8] done_at sorted set of jobs that are over, score = ms until which each is kept
-- KEYS[9] workers sorted set, tag of a worker by its last beat, ms
-- KEYS[10] schedules hash, id -> definition
-- KEYS[11] states hash, id -> state of a schedule
-- ARGV[1] canary  the id of the canary among the schedules
--
-- returns {now ms, ready, delayed, running, parked, dead, ms since which the oldest
-- ready job could run or "0", jobs that are over and kept, workers that have been heard
-- of within a minute, the canary's definition and its state, each "" where there is
-- none, then the fields and values of meta}
-- include: time
-- include: head
-- include: parked
-- include: entry

local now = math.floor(now_us() / 1000)
local now_text = num(now)
local total = redis.call('XLEN', KEYS[1]) + redis.call('HLEN', KEYS[2])
local running = redis.call('ZCOUNT', KEYS[5], '(' .. now_text, '+inf')
local parked = redis.call('ZCOUNT', KEYS[3], parked_text, '+inf')
local delayed = redis.call('ZCOUNT', KEYS[3], '(' .. now_text, '+inf') - parked
local meta = redis.call('HGETALL', KEYS[7])
local cursor_id
for i = 1, #meta, 2 do
  if meta[i] == 'cursor' then cursor_id = stream_id(meta[i + 1]) end
end

local oldest = 0
local function older(ms)
  if ms and ms > 0 and (oldest == 0 or ms < oldest) then oldest = ms end
end
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, 1)
older(tonumber(due[2] or ''))
for priority = 1, 9 do
  local first = redis.call('ZRANGEBYSCORE', KEYS[4], prio_text(priority, 0),
    '(' .. prio_text(priority - 1, 0), 'WITHSCORES', 'LIMIT', 0, 1)
  if first[2] then older(tonumber(first[2]) - (9 - priority) * 10000000000000) end
end
local function since(id)
  local us = string.match(id, '^%d+')
  return us and math.floor(tonumber(us) / 1000)
end
local fresh = redis.call('XRANGE', KEYS[1], cursor_id and '(' .. cursor_id or '-', '+', 'COUNT', 1)
if fresh[1] then older(since(fresh[1][1])) end
-- A lease that ran out, or was given back, waits since its job could first run.
local lapsed = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', now_text, 'LIMIT', 0, 1)
if lapsed[1] then
  local _, _, _, _, _, due_ms = head_read(redis.call('HGET', KEYS[2], lapsed[1]) or '')
  older(due_ms > 0 and due_ms or since(lapsed[1]))
end

local reply = { now_text, total - running - delayed - parked, delayed, running, parked,
  redis.call('XLEN', KEYS[6]), num(oldest), redis.call('ZCOUNT', KEYS[8], '(' .. now_text, '+inf'),
  redis.call('ZCOUNT', KEYS[9], '(' .. num(now - 60000), '+inf'),
  redis.call('HGET', KEYS[10], ARGV[1]) or '', redis.call('HGET', KEYS[11], ARGV[1]) or '' }
for _, part in ipairs(meta) do reply[#reply + 1] = part end
return reply
