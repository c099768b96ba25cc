-- unique_behind is what a key is to hold once a job that waits behind its holder
-- has gone, or nil if no such job is this one.
local function unique_behind(key, id)
  local value_text = redis.pcall('GET', key)
  if type(value_text) == 'table' then return nil end
  local holder_id, mode_s, till, next_id = unique_parse(value_text)
  if next_id ~= id then return nil end
  return holder_id .. ' ' .. mode_s .. ' ' .. num(till)
end
