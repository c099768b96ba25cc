-- unpark: look at jobs that are parked, each behind the holder of its unique key, and
-- let those run whose holder has gone without an end, by an eviction or a hand edit.
-- Each is judged in this moment, so that a call may be sent again, or come late.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] leases  sorted set, score = deadline ms
-- KEYS[5] meta    hash
-- KEYS[6] minutes hash, the counters at the start of each minute
-- KEYS[7] wake    list of tokens
-- KEYS[8..]       unique keys
-- ARGV[1..]       per job: id, and the index of its unique key in KEYS[8..] (0: none
--                 that can be read)
--
-- returns "ok"
-- include: time
-- include: head
-- include: graves
-- include: full
-- include: parked
-- include: unique_own
-- include: wake
-- include: unique_pass
-- include: tally

local now = math.floor(now_us() / 1000)
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[2])
redis.call('ZCARD', KEYS[3])
redis.call('HLEN', KEYS[5])
local minute = minute_turned(KEYS[6], now)
local waiting = redis.call('LLEN', KEYS[7])

local seen, passes, strays = {}, {}, {}
for i = 1, #ARGV, 2 do
  local id, key = ARGV[i], KEYS[7 + tonumber(ARGV[i + 1])]
  if is_parked(redis.call('ZSCORE', KEYS[3], id)) then
    local holder, till, next_id = nil, 0, nil
    local mistyped = ARGV[i + 1] == '0' or unique_mistyped(key)
    if not mistyped then
      local _
      holder, _, till, next_id = unique_read(key)
    end
    local held_on = holder and holder ~= id and lives(KEYS[1], KEYS[2], holder)
    if held_on and next_id == id then
      seen[#seen + 1] = num(parked_from + now)
      seen[#seen + 1] = id
    elseif held_on or mistyped then
      strays[#strays + 1] = id
    else
      passes[#passes + 1] = { key, till, id }
    end
  end
end

write_when_full(KEYS[4])
if #seen > 0 then redis.call('ZADD', KEYS[3], 'XX', unpack(seen)) end
for _, id in ipairs(strays) do redis.call('ZADD', KEYS[3], 'XX', num(now), id) end
if #passes + #strays > 0 then
  minute_note(KEYS[6], KEYS[5], minute)
  tally(KEYS[5], 'n:healed', #passes + #strays)
  wake_push(KEYS[7], #strays, waiting)
  unique_pass_all(passes, KEYS[2], KEYS[3], KEYS[7], redis.call('LLEN', KEYS[7]), now)
end
return 'ok'
