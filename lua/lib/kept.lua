-- A job that is over and that somebody may want to find (Retain) lies in done, and in
-- done:at by the ms until which it is kept. A call that adds some lets others go; what
-- it leaves of these, the next one does, or trim.
local kept_most = 10000

-- kept_stale is who is let go when so many are added: those whose time is over, then,
-- of what is above the most there may be, those whose time would be over first.
local function kept_stale(done_at, adding, now, most)
  local stale = redis.call('ZRANGEBYSCORE', done_at, '-inf', num(now), 'LIMIT', 0, most)
  local above = math.min(redis.call('ZCARD', done_at) + adding - kept_most, most)
  if above > #stale then return redis.call('ZRANGE', done_at, 0, above - 1) end
  return stale
end

-- kept_write is given an id and a record for each that is added, and a score and an id.
local function kept_write(done, done_at, stale, bodies, times)
  if #stale > 0 then
    redis.call('HDEL', done, unpack(stale))
    redis.call('ZREM', done_at, unpack(stale))
  end
  if #bodies > 0 then
    redis.call('HSET', done, unpack(bodies))
    redis.call('ZADD', done_at, unpack(times))
  end
end
