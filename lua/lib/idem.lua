-- An idempotency key holds "<id> <r|d> <until>": the job that runs under it (r),
-- or that was done under it (d), and the ms until which that counts. A mark that
-- runs has no end of its own, and no TTL: it is worth what its job's lease is.
local function idem_read(key)
  local value_text = redis.pcall('GET', key)
  if type(value_text) == 'table' then return nil, 'mistyped', 0 end
  local id, mode, till = string.match(value_text or '', '^(%S+) ([rd]) (%d+)$')
  return id, mode, tonumber(till or '0')
end

-- idem_keeps is whether a mark keeps other jobs from running: one that is done,
-- for its window; one that runs, while its job has a lease that can still end as
-- done. That includes one that ran out and that nobody has taken.
local function idem_keeps(id, mode, till, leases, now)
  if mode == 'd' then return now < till end
  local score = id and redis.call('ZSCORE', leases, id)
  return score and tonumber(score) ~= 0
end
