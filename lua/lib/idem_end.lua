-- idem_end is what the end of a job makes of its key: done for window ms, or, if
-- that is 0, free. Marks that are worth something to another job stay, and so does
-- a key that something else has made a list.
local function idem_end(key, id, window, leases, now)
  local holder_id, mode, till = idem_read(key)
  if mode == 'mistyped' then return end
  if holder_id ~= id and idem_keeps(holder_id, mode, till, leases, now) then return end
  if window > 0 then
    local till_text = num(now + 1 + window)
    redis.call('SET', key, id .. ' d ' .. till_text, 'PXAT', till_text)
  elseif holder_id == id and mode == 'r' then
    redis.call('DEL', key)
  end
end
