-- records reads the records of ids from either home; false where there is none.
local function records(jobs, held, ids)
  local found = redis.call('HMGET', held, unpack(ids))
  for i, id in ipairs(ids) do
    if not found[i] then
      -- A member that a hand edit left may be no id at all: an error, no entry.
      local entry = redis.pcall('XRANGE', jobs, id, id)[1]
      found[i] = entry and entry_record(entry) or false
    end
  end
  return found
end
