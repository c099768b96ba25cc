-- claim: mark idempotency keys as running, for jobs that are about to be run.
-- It has no lane: sent again it finds its own marks, and late, no lease.
--
-- KEYS[1] leases  sorted set, score = deadline ms
-- KEYS[2] runs    hash, id -> run entry
-- KEYS[3..]       idempotency keys, one per job
-- ARGV[1..]       per job: id, token
--
-- returns a letter per job: "k" it may run, "m" it may too, but its key is of a
-- wrong type and keeps nobody from anything, "d" a job was done under the key, "b"
-- one runs under it, "c" to be cancelled, "l" lost; then for each "d" and "b"
-- " <holder> <ms>", ms being for how long it has been leased (0 for "d")
-- include: time
-- include: runs
-- include: fence
-- include: full
-- include: idem

local us = now_us()
local now = math.floor(us / 1000)
local ids, tokens = {}, {}
for i = 1, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
  tokens[#tokens + 1] = ARGV[i + 1]
end
local marks, alive = fence(KEYS[1], KEYS[2], ids, tokens)
local taken, holders, writes = {}, {}, {}
for i, id in ipairs(ids) do
  if marks[i] == 'k' then
    local key = KEYS[2 + i]
    local holder_id, mode, till = idem_read(key)
    if taken[key] then holder_id, mode, till = taken[key], 'r', 0 end
    if mode == 'mistyped' then
      marks[i] = 'm'
    elseif not (mode == 'r' and holder_id == id) then
      if holder_id and idem_keeps(holder_id, mode, till, KEYS[1], now) then
        marks[i] = mode == 'd' and 'd' or 'b'
        local token = mode == 'r' and run_read(redis.call('HGET', KEYS[2], holder_id)) or ''
        local since = tonumber(string.match(token, '^%d+') or us)
        holders[#holders + 1] = holder_id
        holders[#holders + 1] = num(math.max(0, math.floor((us - since) / 1000)))
      else
        taken[key] = id
        writes[#writes + 1] = { key, id .. ' r 0' }
      end
    end
  end
end

if #writes > 0 or #alive > 0 then write_when_full(KEYS[1]) end
for _, write in ipairs(writes) do redis.call('SET', write[1], write[2]) end
if #alive > 0 then redis.call('HSET', KEYS[2], unpack(alive)) end
local answer = table.concat(marks)
if #holders > 0 then answer = answer .. ' ' .. table.concat(holders, ' ') end
return answer
