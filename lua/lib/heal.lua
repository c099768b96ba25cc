-- heal looks at some jobs that have a record and ought to have a lease or a place
-- in a sorted set, and gives back those that have neither: an eviction, a hand
-- edit or a bug cost them. Others are looked at in each call. The loss is not the
-- job's doing, so it comes back as given back, without a crash.
local function heal(jobs, held, due, prio, leases, cursor_id, from_id, look)
  local ids, swept = {}, ''
  if cursor_id then
    local entries = redis.call('XRANGE', jobs, from_id == '' and '-' or '(' .. from_id, cursor_id, 'COUNT', math.min(look, 32))
    for i, entry in ipairs(entries) do ids[i] = entry[1] end
    swept = #entries == math.min(look, 32) and ids[#ids] or ''
  end
  local streamed = #ids
  for _, id in ipairs(redis.call('HRANDFIELD', held, look)) do ids[#ids + 1] = id end
  if #ids == 0 then return swept, 0 end
  local leased = redis.call('ZMSCORE', leases, unpack(ids))
  local waits = redis.call('ZMSCORE', due, unpack(ids))
  local ranked = redis.call('ZMSCORE', prio, unpack(ids))
  local found = 0
  for i, id in ipairs(ids) do
    if not leased[i] and (i <= streamed or not (waits[i] or ranked[i])) then
      redis.call('ZADD', leases, '0', id)
      found = found + 1
    end
  end
  return swept, found
end
