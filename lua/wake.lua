-- wake: pass a token on. A hint may be repeated, so it needs no lane.
--
-- KEYS[1] wake    list of tokens
--
-- returns "ok"
-- include: wake

wake_push(KEYS[1], 1, redis.call('LLEN', KEYS[1]))
return 'ok'
