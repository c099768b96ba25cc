-- deaths: a page of post-mortems, in the order of the deaths. Reads only.
--
-- KEYS[1] dead    stream of post-mortems
-- ARGV[1] from    first and last entry, as XRANGE takes them
-- ARGV[2] to
--
-- returns entries as XRANGE does: at most 250, and little more than a megabyte

-- One by one, since a single one may have megabytes, and a count bounds no bytes.
local page, bytes, from = {}, 0, ARGV[1]
while #page < 250 and bytes < 1000000 do
  local entry = redis.call('XRANGE', KEYS[1], from, ARGV[2], 'COUNT', 1)[1]
  if not entry then break end
  page[#page + 1] = entry
  for _, part in ipairs(entry[2]) do bytes = bytes + #part end
  local id = entry[1]
  from = '(' .. id
end
return page
