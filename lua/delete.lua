-- delete: remove dead jobs for good.
--
-- KEYS[1] dead    stream of post-mortems
-- KEYS[2] index   hash, id -> entry of dead
-- KEYS[3] meta    hash
-- KEYS[4] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2..]       ids
--
-- returns "stale" | a letter per id: "k" removed, "m" not dead
-- include: lane
-- include: tally

local seen = lane_seen(KEYS[4], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[3])
local marks, gone, graves, met = {}, {}, {}, {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local grave = not met[id] and redis.call('HGET', KEYS[2], id)
  marks[#marks + 1] = grave and 'k' or 'm'
  if grave then
    met[id] = true
    gone[#gone + 1] = id
    graves[#graves + 1] = grave
  end
end
if #gone > 0 then
  redis.call('XDEL', KEYS[1], unpack(graves))
  redis.call('HDEL', KEYS[2], unpack(gone))
  tally(KEYS[3], 'n:purged', #gone)
end
local answer = table.concat(marks)
lane_keep(KEYS[4], ARGV[1], answer)
return answer
