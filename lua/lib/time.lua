-- The server's clock, in whole microseconds. No client's clock decides anything.
local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Lua keeps 14 digits when it joins a number to a text; ids and times have 16.
local function num(n)
  -- '%d' costs less than '%.0f'; in halves it fits a Redis of 32 bits.
  if n >= 0 and n < 100000000 then return string.format('%d', n) end
  if n >= 0 and n < 10000000000000000 then
    local low = n % 100000000
    return string.format('%d%08d', (n - low) / 100000000, low)
  end
  return string.format('%.0f', n)
end
