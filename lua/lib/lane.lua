-- A lane holds the last call of one caller as "<seq> <answer>". A call that is
-- sent again under its sequence gets the first answer and does nothing; one
-- that arrives after a newer call is stale and does nothing.
local function lane_seen(key, seq_text)
  local kept = redis.call('GET', key)
  local space = kept and string.find(kept, ' ', 1, true)
  if not space then return nil end
  local last, seq = tonumber(string.sub(kept, 1, space - 1)), tonumber(seq_text)
  if not last or last < seq then return nil end
  if last > seq then return 'stale' end
  return string.sub(kept, space + 1)
end

local function lane_keep(key, seq_text, answer)
  redis.call('SET', key, seq_text .. ' ' .. answer, 'PX', 120000)
end
