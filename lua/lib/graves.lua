-- lives is whether a job that is not dead has this id.
local function lives(jobs, held, id)
  return redis.call('HEXISTS', held, id) == 1 or #redis.pcall('XRANGE', jobs, id, id) > 0 -- an error if it is no id
end

-- grave_owner is the id of the job that an entry of dead is the post-mortem of.
local function grave_owner(entry)
  local fields = entry[2]
  return fields[1] == 'i' and fields[3] == 'p' and fields[2] or nil
end

-- grave_is is whether an entry of dead is the post-mortem of a job, and how many
-- bytes it has.
local function grave_is(dead, entry_id, id)
  local entry = entry_id and redis.pcall('XRANGE', dead, entry_id, entry_id)[1]
  if not entry then return false, 0 end
  -- It may be spelled in a way that no script would ever take for the same.
  return entry[1] == entry_id and grave_owner(entry) == id, #(entry[2][4] or '')
end
