-- unique_pass gives the key of a job that ends to the one that waits behind it,
-- which runs now, or when its own time comes. It returns that time, or nil if that
-- job has gone: then the key is to be freed.
local function unique_pass(key, till, next_id, held, due, now)
  local record = redis.call('HGET', held, next_id)
  if not record then return nil end
  local _, _, _, _, _, at = head_read(record)
  if at < now then at = now end
  if is_parked(redis.call('ZSCORE', due, next_id)) then
    redis.call('HSET', held, next_id, head_due(record, at))
    redis.call('ZADD', due, num(at), next_id)
  end
  redis.call('SET', key, next_id .. ' d ' .. num(till))
  return at
end

-- unique_pass_all does so for keys of "{key, till, next}", and wakes those who
-- wait for work.
local function unique_pass_all(passes, held, due, wake, waiting, now)
  local ready = 0
  for _, pass in ipairs(passes) do
    local at = unique_pass(pass[1], pass[2], pass[3], held, due, now)
    if not at then
      unique_free(pass[1], pass[2], now)
    elseif at <= now or wake_due(due, at, now) then
      ready = ready + 1
    end
  end
  wake_push(wake, ready, waiting)
end
