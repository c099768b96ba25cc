-- wake_push leaves tokens for waiting workers, two at the most: a token is only
-- a hint that there is work, and two wake a fleet faster than one.
local function wake_push(wake, count, waiting)
  local lacking = math.min(count, 2 - waiting)
  if lacking >= 2 then
    redis.call('LPUSH', wake, '1', '1')
  elseif lacking >= 1 then
    redis.call('LPUSH', wake, '1')
  end
end

-- wake_due is whether a time is near, and the first of those that wait, so that
-- a waiting worker should look again.
local function wake_due(due, score, now)
  if score > now + 10000 then return false end
  local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  return first[2] ~= nil and tonumber(first[2]) >= score
end
