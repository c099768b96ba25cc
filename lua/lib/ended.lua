-- ended_tell tells those who wait for the ends of jobs. It is a hint: they look for
-- themselves, and if it cannot be said, for want of a right, nothing else is changed.
local function ended_tell(channel, ids)
  if #ids > 0 then redis.pcall('PUBLISH', channel, table.concat(ids, ' ')) end
end
