-- purge: remove jobs that wait, each if it still waits in the state it was seen
-- in, and free all that they hold.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] meta    hash
-- KEYS[8] minutes hash, the counters at the start of each minute
-- KEYS[9] lane    the caller's lane
-- KEYS[10] wake   list of tokens
-- KEYS[11..]      unique and idempotency keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] state   ready, delayed or parked
-- ARGV[3..]       per job: id, and the index of its unique key in KEYS[11..]
--                 (0: none), with an idempotency key followed by that one's index
--
-- returns "stale" | a letter per job: "k" removed, "m" not in that state
-- include: time
-- include: lane
-- include: full
-- include: parked
-- include: unique_own
-- include: keys_end
-- include: unique_behind
-- include: erase
-- include: tally

local seen = lane_seen(KEYS[9], ARGV[1])
if seen then return seen end
local now = math.floor(now_us() / 1000)
redis.call('XLEN', KEYS[1])
redis.call('ZCARD', KEYS[4])
redis.call('HLEN', KEYS[6])
redis.call('HLEN', KEYS[7])
local minute = minute_turned(KEYS[8], now)
local waiting = redis.call('LLEN', KEYS[10])

local ids, marks, gone, leaves, met = {}, {}, {}, {}, {}
for i = 3, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local waits = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local leases = redis.call('ZMSCORE', KEYS[5], unpack(ids))
for i, id in ipairs(ids) do
  local there = redis.call('HEXISTS', KEYS[2], id) == 1 or #redis.call('XRANGE', KEYS[1], id, id) > 0
  local due, deadline = tonumber(waits[i] or ''), tonumber(leases[i] or '')
  local state = is_parked(due) and 'parked' or due and due > now and 'delayed' or 'ready'
  local mark = 'm'
  if there and not met[id] and state == ARGV[2] and not (deadline and deadline > now) then
    mark = 'k'
    met[id] = true
    gone[#gone + 1] = id
    local word = ARGV[2 * i + 2]
    local unique = tonumber(string.match(word, '^%d+'))
    local rest_text = unique > 0 and unique_behind(KEYS[10 + unique], id)
    if rest_text then leaves[#leaves + 1] = { KEYS[10 + unique], rest_text } end
    keys_end(id, word, 10)
  end
  marks[#marks + 1] = mark
end
write_when_full(KEYS[5])
if #gone > 0 then
  erase(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], gone)
  for _, free in ipairs(frees) do unique_free(free[1], free[2], now) end
  if #idems > 0 then
    -- include: idem
    -- include: idem_end
    for _, e in ipairs(idems) do idem_end(e[1], e[2], 0, KEYS[5], now) end
  end
  for _, leave in ipairs(leaves) do redis.call('SET', leave[1], leave[2]) end
  if #passes > 0 then
    -- include: head
    -- include: wake
    -- include: unique_pass
    unique_pass_all(passes, KEYS[2], KEYS[3], KEYS[10], waiting, now)
  end
  minute_note(KEYS[8], KEYS[7], minute)
  tally(KEYS[7], 'n:purged', #gone)
end
local answer = table.concat(marks)
lane_keep(KEYS[9], ARGV[1], answer)
return answer
