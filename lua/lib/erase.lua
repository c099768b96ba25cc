-- erase removes jobs that wait, wherever they do.
local function erase(jobs, held, due, prio, leases, runs, ids)
  redis.call('XDEL', jobs, unpack(ids))
  redis.call('HDEL', held, unpack(ids))
  redis.call('ZREM', due, unpack(ids))
  redis.call('ZREM', prio, unpack(ids))
  redis.call('ZREM', leases, unpack(ids))
  redis.call('HDEL', runs, unpack(ids))
end
