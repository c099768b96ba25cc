-- What is left of a job that ends is said as "<ms> <field>": for how long its record is
-- kept, and the field (tag 21) that says how it ended. left_read is the record with that
-- field, behind its kind, as fields may come in any order, and those ms. A record that
-- cannot be read stays as it is.
local function left_read(left_text, record)
  local space = string.find(left_text, ' ', 1, true)
  local ms, field_text = tonumber(string.sub(left_text, 1, space - 1)), string.sub(left_text, space + 1)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags then return record, ms end
  local at = math.floor(flags / 32) % 2 == 1 and 15 or 3
  local length, more = string.byte(record, at, at + 1)
  if not length then return record, ms end
  if length > 127 then length, at = length - 128 + (more or 0) * 128, at + 1 end
  at = at + length
  if at >= #record then return record, ms end
  return string.sub(record, 1, at) .. field_text .. string.sub(record, at + 1), ms
end
