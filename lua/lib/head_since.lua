-- head_since writes from when ExpireIn counts (tag 7) into a record that has no such
-- field yet: behind its kind, since fields may come in any order. What it cannot read
-- stays as it is.
local function head_since(record, ms)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags or math.floor(flags / 32) % 2 == 0 or #record < 15 then return record end
  local length, more = string.byte(record, 15, 16)
  local at = 15
  if length > 127 then length, at = length - 128 + (more or 0) * 128, 16 end
  at = at + length
  if at >= #record then return record end
  local bytes = {}
  while ms > 127 do
    bytes[#bytes + 1] = ms % 128 + 128
    ms = math.floor(ms / 128)
  end
  bytes[#bytes + 1] = ms
  return string.sub(record, 1, at) .. string.char(7, #bytes, unpack(bytes)) .. string.sub(record, at + 1)
end
