-- stop: end a worker's blocking read, the one under way or the next. Its DEL is
-- for a full server: of a script that begins with it Redis refuses no write.
--
-- KEYS[1] stop    list, which that worker blocks on as well
--
-- returns "ok"

redis.call('DEL', KEYS[1])
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], 60000)
return 'ok'
