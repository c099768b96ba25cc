-- schedule: write schedules, or remove them, each only if it is as the caller saw it.
--
-- KEYS[1] schedules hash, id -> definition
-- KEYS[2] at      sorted set, ids of those that are not paused, score = ms of the next tick
-- KEYS[3] states  hash, id -> state
-- KEYS[4] lane    the caller's lane
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] most    how many the queue may have
-- ARGV[3..]       per schedule: id, the state that was seen ("": none), the state that
--                 it is to have ("": it is removed), and its definition ("": as it is)
--
-- returns "stale" | a letter per schedule: "k" done, "l" it has changed since it was
-- seen, "f" there are as many as there may be
-- include: time
-- include: lane
-- include: schedule

local seen = lane_seen(KEYS[4], ARGV[1])
if seen then return seen end
local count, most = redis.call('HLEN', KEYS[1]), tonumber(ARGV[2])
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[3])

local marks, definitions, states, times, still, gone = {}, {}, {}, {}, {}, {}
for i = 3, #ARGV, 4 do
  local id, seen_text, state_text, definition = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local known = redis.call('HEXISTS', KEYS[1], id) == 1
  local state = schedule_read(state_text)
  local mark = 'k'
  if (redis.call('HGET', KEYS[3], id) or '') ~= seen_text then
    mark = 'l'
  elseif state_text == '' then
    gone[#gone + 1] = id
  elseif not state or definition == '' and not known then
    mark = 'l'
  elseif not known and count >= most then
    mark = 'f'
  else
    if not known then count = count + 1 end
    if definition ~= '' then
      definitions[#definitions + 1] = id
      definitions[#definitions + 1] = definition
    end
    states[#states + 1] = id
    states[#states + 1] = state_text
    if state.paused_s == '1' then
      still[#still + 1] = id
    else
      times[#times + 1] = state.next_s
      times[#times + 1] = id
    end
  end
  marks[#marks + 1] = mark
end

-- A full Redis refuses what registers, and hears an operator who pauses or removes.
if #definitions > 0 then
  redis.call('HSET', KEYS[1], unpack(definitions))
else
  redis.call('DEL', KEYS[4])
end
if #states > 0 then redis.call('HSET', KEYS[3], unpack(states)) end
if #times > 0 then redis.call('ZADD', KEYS[2], unpack(times)) end
if #still > 0 then redis.call('ZREM', KEYS[2], unpack(still)) end
if #gone > 0 then
  redis.call('ZREM', KEYS[2], unpack(gone))
  redis.call('HDEL', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[1], unpack(gone))
end
local answer = table.concat(marks)
lane_keep(KEYS[4], ARGV[1], answer)
return answer
