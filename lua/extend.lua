-- extend: renew leases, each by its own visibility timeout.
--
-- KEYS[1] leases  sorted set, score = deadline ms
-- KEYS[2] runs    hash, id -> run entry
-- KEYS[3] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       per job: id, token, visibility ms
--
-- returns "stale" | a letter per job: "k" renewed, "c" renewed and to be
-- cancelled, "l" lost
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
local from, renewed = math.ceil(now_us() / 1000), {}
for i, id in ipairs(ids) do
  if marks[i] ~= 'l' then
    renewed[#renewed + 1] = num(from + tonumber(ARGV[3 * i + 1]))
    renewed[#renewed + 1] = id
  end
end

write_when_full(KEYS[1])
if #renewed > 0 then redis.call('ZADD', KEYS[1], 'XX', unpack(renewed)) end
if #alive > 0 then redis.call('HSET', KEYS[2], unpack(alive)) end
local answer = table.concat(marks)
lane_keep(KEYS[3], ARGV[1], answer)
return answer
