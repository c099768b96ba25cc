-- release: give running jobs back, to be leased next; spends no attempt.
--
-- KEYS[1] leases  sorted set, score = deadline ms
-- KEYS[2] runs    hash, id -> run entry
-- KEYS[3] meta    hash
-- KEYS[4] minutes hash, the counters at the start of each minute
-- KEYS[5] wake    list of tokens
-- KEYS[6] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       per job: id, token, 1 if its handler was not called or else 0
--
-- returns "stale" | a letter per job: "k" given back, "c" given back and to be
-- cancelled by whoever leases it, "l" lost
-- include: time
-- include: lane
-- include: runs
-- include: fence
-- include: full
-- include: wake
-- include: tally

local seen = lane_seen(KEYS[6], ARGV[1])
if seen then return seen end
redis.call('HLEN', KEYS[3])
local minute = minute_turned(KEYS[4], math.floor(now_us() / 1000))
local waiting = redis.call('LLEN', KEYS[5])

local ids, tokens = {}, {}
for i = 2, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[1], KEYS[2], ids, tokens)
local entries = redis.call('HMGET', KEYS[2], unpack(ids))
local back, unrun = {}, {}
for i, id in ipairs(ids) do
  if marks[i] ~= 'l' then
    back[#back + 1] = '0'
    back[#back + 1] = id
    local token, crashes, flags_s, before_token, progress_text = run_read(entries[i])
    -- Not of one that is to be cancelled: its unique key need not wait for the end.
    if marks[i] == 'k' and ARGV[3 * i + 1] == '1' and not string.find(flags_s, 'r', 1, true) then
      unrun[#unrun + 1] = id
      unrun[#unrun + 1] = run_text(token, crashes, 'u', before_token, progress_text)
    end
  end
end

write_when_full(KEYS[1])
if #back > 0 then
  redis.call('ZADD', KEYS[1], 'XX', unpack(back))
  if #unrun > 0 then redis.call('HSET', KEYS[2], unpack(unrun)) end
  minute_note(KEYS[4], KEYS[3], minute)
  tally(KEYS[3], 'n:released', #back / 2)
  wake_push(KEYS[5], #back / 2, waiting)
end
if #alive > 0 then redis.call('HSET', KEYS[2], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[6], ARGV[1], answer)
return answer
