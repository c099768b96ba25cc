-- delete: remove dead jobs for good, each only as the death it was seen as.
--
-- KEYS[1] dead    stream of post-mortems
-- KEYS[2] index   hash, id -> entry of dead
-- KEYS[3] meta    hash
-- KEYS[4] minutes hash, the counters at the start of each minute
-- KEYS[5] lane    the caller's lane
-- KEYS[6] jobs    stream, fresh jobs
-- KEYS[7] held    hash, id -> record
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] counter purged or dropped
-- ARGV[3] age     ms since the death, at the least
-- ARGV[4..]       per job: id, and its entry of dead, or "" for whichever it is
--
-- returns "stale" | a letter per job: "k" removed, "s" an entry removed that no
-- dead job had, "m" not dead, or dead of another death, or too young
-- include: time
-- include: lane
-- include: tell
-- include: graves
-- include: tally

local seen = lane_seen(KEYS[5], ARGV[1])
if seen then return seen end
redis.call('XLEN', KEYS[1])
redis.call('HLEN', KEYS[3])
redis.call('XLEN', KEYS[6])
redis.call('HLEN', KEYS[7])
local now = math.floor(now_us() / 1000)
local minute = minute_turned(KEYS[4], now)
local before = now - tonumber(ARGV[3])

local marks, gone, graves, met = {}, {}, {}, {}
for i = 4, #ARGV, 2 do
  local id, wanted = ARGV[i], ARGV[i + 1]
  local grave = redis.call('HGET', KEYS[2], id)
  if not grave and wanted ~= '' and not lives(KEYS[6], KEYS[7], id) and grave_is(KEYS[1], wanted, id) then
    grave = wanted -- of a job that the index has lost, the stream knows as much
  end
  if met[id] then grave = nil end -- given twice
  local entry = wanted ~= '' and wanted or grave
  local at = entry and tonumber(string.match(entry, '^(%d+)%-%d+$') or '')
  local mark = 'm'
  if entry and (at or 0) <= before then
    if grave == entry then
      mark = 'k'
      met[id] = entry
      gone[#gone + 1] = id
      if at then graves[#graves + 1] = entry end
    elseif at and met[id] ~= entry and #redis.call('XRANGE', KEYS[1], entry, entry) > 0 then
      -- Each dead job has one entry, which the index names: nobody finds this one.
      mark = 's'
      graves[#graves + 1] = entry
    end
  end
  marks[#marks + 1] = mark
end
if #graves > 0 then redis.call('XDEL', KEYS[1], unpack(graves)) end
if #gone > 0 then
  redis.call('HDEL', KEYS[2], unpack(gone))
  minute_note(KEYS[4], KEYS[3], minute)
  tally(KEYS[3], 'n:' .. string.lower(ARGV[2]), #gone)
end
local answer = table.concat(marks)
lane_tell(KEYS[5], ARGV[1], answer)
return answer
