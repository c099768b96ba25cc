-- progress: note how far running jobs have come, in their run entries.
--
-- KEYS[1] leases  sorted set, score = deadline ms
-- KEYS[2] runs    hash, id -> run entry
-- KEYS[3] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       per job: id, token, " <percent> <note>" without any "|"
--
-- returns "stale" | a letter per job: "k" noted, "c" noted and to be cancelled,
-- "l" lost
-- include: time
-- include: lane
-- include: runs
-- include: fence
-- include: full

local seen = lane_seen(KEYS[3], ARGV[1])
if seen then return seen end

local ids, tokens = {}, {}
for i = 2, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[1], KEYS[2], ids, tokens)
local entries = redis.call('HMGET', KEYS[2], unpack(ids))
local noted = {}
for i, id in ipairs(ids) do
  if marks[i] ~= 'l' then
    local token, crashes, flags_s, before_token = run_read(entries[i])
    noted[#noted + 1] = id
    noted[#noted + 1] = run_text(token, crashes, flags_s, before_token, ARGV[3 * i + 1])
  end
end

write_when_full(KEYS[1])
if #noted > 0 then redis.call('HSET', KEYS[2], unpack(noted)) end
if #alive > 0 then redis.call('HSET', KEYS[2], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[3], ARGV[1], answer)
return answer
