-- schedules: what there is to know of some schedules, all in one moment. Reads only.
--
-- KEYS[1] schedules hash, id -> definition
-- KEYS[2] at      sorted set, ids of those that are not paused, score = ms of the next tick
-- KEYS[3] states  hash, id -> state
-- ARGV[1] which   "due", those whose time has come, first come first; "odd", those of
--                 which a part is missing or does not fit the others; "all"; or "ids"
-- ARGV[2] skip    how many of those that are due to pass over
-- ARGV[3..]       ids
--
-- returns {now ms, ms until the first tick that is yet to come or "-", then per
-- schedule: id, definition, state, ms of its next tick; each "" where there is none}.
-- Of "all" it tells the ids alone. It stops at a megabyte: after that come none
-- include: time
-- include: schedule

local now = math.floor(now_us() / 1000)
local ids = {}
if ARGV[1] == 'ids' then
  for i = 3, #ARGV do ids[#ids + 1] = ARGV[i] end
elseif ARGV[1] == 'due' then
  ids = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', num(now), 'LIMIT', ARGV[2], 100)
else
  -- No more than 1000 are let in; a hand may have put in others.
  local met = {}
  for _, some in ipairs({ redis.call('HRANDFIELD', KEYS[1], 2000), redis.call('HRANDFIELD', KEYS[3], 2000),
    redis.call('ZRANGE', KEYS[2], 0, 1999) }) do
    for _, id in ipairs(some) do
      if not met[id] then ids[#ids + 1] = id end
      met[id] = true
    end
  end
end

local function odd(id)
  local state = schedule_read(redis.call('HGET', KEYS[3], id))
  if not state or redis.call('HEXISTS', KEYS[1], id) == 0 then return true end
  local score = tonumber(redis.call('ZSCORE', KEYS[2], id) or '')
  if state.paused_s == '1' then return score ~= nil end
  return score ~= tonumber(state.next_s)
end

local wait_text = '-'
local to_come = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. num(now), '999999999999999', 'WITHSCORES', 'LIMIT', 0, 1)
if to_come[2] then wait_text = num(tonumber(to_come[2]) - now) end

local reply, bytes = { num(now), wait_text }, 0
for _, id in ipairs(ids) do
  if bytes > 1000000 then break end
  if ARGV[1] ~= 'odd' or odd(id) then
    reply[#reply + 1] = id
    local definition = ARGV[1] ~= 'all' and redis.call('HGET', KEYS[1], id) or ''
    local state_text = ARGV[1] ~= 'all' and redis.call('HGET', KEYS[3], id) or ''
    reply[#reply + 1] = definition
    reply[#reply + 1] = state_text
    reply[#reply + 1] = ARGV[1] ~= 'all' and redis.call('ZSCORE', KEYS[2], id) or ''
    bytes = bytes + #definition + #state_text
  end
end
return reply
