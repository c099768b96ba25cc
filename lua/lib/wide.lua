-- A small hash or sorted set is a list to Redis, and each look-up walks it: with a
-- hundred jobs running, that was a third of what they cost. One member longer than
-- 64 bytes makes it a table, which it stays until it is empty. So this text is put
-- into one that is about to grow, and taken out in the same call.
local wide_text = '-----------------------------------------------------------------'
