-- redrive: send dead jobs back to ready, each with the record it is given.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] runs    hash, id -> run entry
-- KEYS[6] dead    stream of post-mortems
-- KEYS[7] index   hash, id -> entry of dead
-- KEYS[8] meta    hash
-- KEYS[9] minutes hash, the counters at the start of each minute
-- KEYS[10] wake    list of tokens
-- KEYS[11] lane   the caller's lane
-- KEYS[12..]      unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] mode    "go", or "dry" to change nothing, the lane included
-- ARGV[3..]       per job: id, the entry of dead that the record was made from,
--                 record, and its unique key: "" or "<index> <d|s> <window end>";
--                 "raw" if the record cannot be read and stays as it is
--
-- returns "stale" | a word per job: "ok" | "missing", not dead | "changed", dead
-- of another death | "mistyped", its unique key is no text | the id that holds that key
-- include: time
-- include: lane
-- include: tell
-- include: head
-- include: graves
-- include: runs
-- include: unique_own
-- include: unique_take
-- include: wake
-- include: tally

local dry = ARGV[2] == 'dry'
local seen = not dry and lane_seen(KEYS[11], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('ZCARD', KEYS[4])
redis.call('HLEN', KEYS[5])
redis.call('XLEN', KEYS[6])
redis.call('HLEN', KEYS[8])
local waiting = redis.call('LLEN', KEYS[10])
local now = math.floor(now_us() / 1000)
local minute = minute_turned(KEYS[9], now)

local words, held, due, prio, keys = {}, {}, {}, {}, {}
local moved, graves, taken, met = {}, {}, {}, {}
for i = 3, #ARGV, 4 do
  local id, grave, record, how = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local entry = redis.call('HGET', KEYS[7], id)
  -- Of a job that the index has lost, the stream knows as much.
  if not entry and not lives(KEYS[1], KEYS[2], id) and grave_is(KEYS[6], grave, id) then entry = grave end
  local word = 'ok'
  if not entry or met[id] then
    word = 'missing'
  elseif entry ~= grave then
    word = 'changed'
  elseif how ~= '' and how ~= 'raw' then
    local unique, mode, till = string.match(how, '^(%d+) (%a) (%d+)$')
    local key = KEYS[11 + tonumber(unique)]
    local mistyped = unique_mistyped(key)
    local holder = taken[key] or not mistyped and unique_holder(key, KEYS[1], KEYS[2], KEYS[5], now)
    -- Its own window may still name it.
    if mistyped then
      word = 'mistyped'
    elseif holder and holder ~= id then
      word = holder
    else
      taken[key] = id
      keys[#keys + 1] = { key, unique_text(id, mode, tonumber(till)) }
    end
  end
  words[#words + 1] = word
  if word == 'ok' then
    met[id] = true
    moved[#moved + 1] = id
    graves[#graves + 1] = grave
    held[#held + 1] = id
    held[#held + 1] = how == 'raw' and record or head_due(record, now)
    local priority = head_read(record)
    local to, score = due, num(now)
    if priority > 0 then to, score = prio, prio_text(priority, now) end
    to[#to + 1] = score
    to[#to + 1] = id
  end
end

if dry then return table.concat(words, ' ') end
if #moved > 0 then
  redis.call('HSET', KEYS[2], unpack(held))
  if #due > 0 then redis.call('ZADD', KEYS[3], unpack(due)) end
  if #prio > 0 then redis.call('ZADD', KEYS[4], unpack(prio)) end
  for _, entry in ipairs(keys) do
    redis.call('SET', entry[1], entry[2])
  end
  redis.call('XDEL', KEYS[6], unpack(graves))
  redis.call('HDEL', KEYS[7], unpack(moved))
  minute_note(KEYS[9], KEYS[8], minute)
  tally(KEYS[8], 'n:redriven', #moved)
  if unique_orphans > 0 then tally(KEYS[8], 'n:healed', unique_orphans) end
  wake_push(KEYS[10], #moved, waiting)
end
local answer = table.concat(words, ' ')
lane_tell(KEYS[11], ARGV[1], answer)
return answer
