-- unique_claim is what there is under a key for which id stands, to one that is to
-- replace what waits there: what the key holds, and as target the job that waits, or
-- nil. parked is whether the target waits behind the holder; runs, whether the holder
-- runs and none waits behind it; since, from when a target that is ready is so.
local function unique_claim(key, id, jobs, held, due, leases, runs, now)
  local holder, mode, till, next_id = unique_read(key)
  local claim = { key = key, id = id, holder = holder, mode = mode, till = till }
  if next_id and is_parked(redis.call('ZSCORE', due, next_id)) and redis.call('HEXISTS', held, next_id) == 1 then
    claim.next_id, claim.target, claim.parked = next_id, next_id, true
    return claim
  end
  local record = redis.call('HGET', held, id)
  if not record and #redis.pcall('XRANGE', jobs, id, id) == 0 then return claim end -- only its window is left
  local deadline = tonumber(redis.call('ZSCORE', leases, id) or '')
  local _, _, flags_s = run_read(redis.call('HGET', runs, id))
  -- A lease that ran out is its holder's until somebody takes it: it may be at work.
  claim.runs = deadline and (deadline ~= 0 or string.find(flags_s, 'c', 1, true) ~= nil)
  if claim.runs then return claim end
  claim.holder, claim.target = id, id
  local score = tonumber(redis.call('ZSCORE', due, id) or '')
  if not score or score <= now then
    -- Newer arguments do not cost it its place, or it might never come to run.
    local _, _, _, _, _, at = head_read(record or '')
    if at == 0 then at = math.floor(tonumber(string.match(id, '^%d+') or '0') / 1000) end
    claim.since = math.min(at, now)
  end
  return claim
end
