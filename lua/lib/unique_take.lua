-- unique_holder is the id that holds the key, or nil if it may be taken: keys
-- without a window have no TTL, so a holder that has gone leaves one behind,
-- and is found out here, its id being its address. Each end of a job frees its
-- key, so that such a job was lost; unique_orphans counts their keys.
local unique_orphans = 0
local function unique_holder(key, jobs, held, runs, now)
  local id, mode, till, next_id = unique_read(key)
  if not id then return nil end
  if now < till then return id end
  local record = redis.call('HGET', held, id)
  local started = false
  if record then
    local _, head_started = head_read(record)
    started = head_started
  elseif #redis.pcall('XRANGE', jobs, id, id) == 0 then -- an error if it is no id
    -- The key is that of the one behind it, which the walk that mends lets run.
    if next_id and redis.call('HEXISTS', held, next_id) == 1 then return next_id end
    if redis.call('PTTL', key) == -1 then unique_orphans = unique_orphans + 1 end
    return nil
  end
  local entry = mode == 's' and not started and redis.call('HGET', runs, id)
  if entry then
    local _, _, flags_s = run_read(entry)
    started = not string.find(flags_s, 'u', 1, true)
  end
  if mode == 's' and started then return nil end
  return id
end

local function unique_text(id, mode_s, till, next_id)
  return id .. ' ' .. mode_s .. ' ' .. num(till) .. (next_id and ' ' .. next_id or '')
end
