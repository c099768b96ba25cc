-- minutes: the counters now, and as they stood at the start of the minutes of a
-- day. Reads only.
--
-- KEYS[1] meta    hash
-- KEYS[2] minutes hash, the counters at the start of each minute
--
-- returns {now ms, the fields of meta, one after another, "", the fields of
-- minutes}
-- include: time

local reply = { num(math.floor(now_us() / 1000)) }
for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do reply[#reply + 1] = part end
reply[#reply + 1] = ''
for _, part in ipairs(redis.call('HGETALL', KEYS[2])) do reply[#reply + 1] = part end
return reply
