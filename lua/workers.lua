-- workers: who has been heard of within a minute. Reads only.
--
-- KEYS[1] workers sorted set, tag of a worker by its last beat, ms
-- KEYS[2] info    hash, tag -> what the worker says of itself
--
-- returns per worker: tag, ms of its last beat, what it says of itself or ""
-- include: time

local now = math.floor(now_us() / 1000)
local members = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. num(now - 60000), '+inf', 'WITHSCORES', 'LIMIT', 0, 2000)
local reply = {}
for i = 1, #members, 2 do
  reply[#reply + 1] = members[i]
  reply[#reply + 1] = members[i + 1]
  reply[#reply + 1] = redis.call('HGET', KEYS[2], members[i]) or ''
end
return reply
