-- tally adds to a counter of meta. One that a hand edit made no number, or that
-- is at its end, starts anew: it must not stop a script in mid-write. Nor must a
-- user who lacks the right, but then the counter stays as it is.
local function tally(meta, name, by)
  local reply = redis.pcall('HINCRBY', meta, name, by)
  local said = type(reply) == 'table' and reply.err or ''
  if string.find(said, 'integer') or string.find(said, 'overflow') then redis.call('HSET', meta, name, by) end
end

-- tally_sum is what a counter comes to, to be written with other fields; nil if
-- that is above what Lua can add exactly, and tally has to.
local function tally_sum(count_text, by)
  local count = tonumber(string.match(count_text or '', '^%d+$') or '0')
  return count < 9000000000000000 and num(count + by) or nil
end

-- minute_turned is the minute that this call is the first of, or nil: before it
-- counts anything, the call is to note how the counters stand.
local function minute_turned(minutes, now)
  local minute = math.floor(now / 60000)
  local noted = tonumber(redis.call('HGET', minutes, 'now') or '')
  -- A clock that goes back counts on in the minute that was begun.
  if noted and minute <= noted and noted < minute + 1440 then return nil end
  return minute
end

-- minute_note writes a field for each minute of the day, over yesterday's.
local function minute_note(minutes, meta, minute)
  if not minute then return end
  local counts = redis.call('HMGET', meta, 'n:enqueued', 'n:duplicate', 'n:started', 'n:done', 'n:failed',
    'n:retried', 'n:snoozed', 'n:released', 'n:crashed', 'n:dead', 'n:redriven', 'n:discarded',
    'n:cancelled', 'n:expired', 'n:purged', 'n:dropped', 'n:lost', 'n:healed',
    'n:skipped')
  for i = 1, 19 do counts[i] = tonumber(counts[i] or '') and counts[i] or '0' end
  redis.call('HSET', minutes, 'now', num(minute), num(minute % 1440),
    num(minute) .. ' ' .. table.concat(counts, ' '))
end
