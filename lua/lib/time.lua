-- The server's clock, in whole microseconds. No client's clock decides anything.
local function now_us()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end

-- Lua keeps 14 digits when it joins a number to a text; ids and times have 16.
local function num(n)
  return string.format('%.0f', n)
end
