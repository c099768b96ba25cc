-- The record of a stream entry. An entry of another shape reads as a record of
-- version 0, which nobody can read, so that it is buried with its raw bytes.
local function entry_record(entry)
  local fields = entry[2]
  if fields[1] == 'r' and #fields == 2 then return fields[2] end
  return '\0' .. table.concat(fields, '\0')
end

-- A stream id is a job's id only if it could have come from enqueue: 16 or 17
-- digits of microseconds and the low half of a UUID of variant 2.
local function entry_id_valid(id)
  -- Most: 16 digits, and of 20 the first two are 10, 11 or 12.
  local dash, first, second = string.byte(id, 17, 19)
  if dash == 45 and #id == 37 and first == 49 and second < 51 then return true end
  local us, low = string.match(id, '^(%d+)-(%d+)$')
  if not us or #us > 17 then return false end
  if #low == 19 then return low >= '9223372036854775808' end
  return #low == 20 and low <= '13835058055282163711'
end

-- stream_id is a text if it is the id of a stream's entry, which a hand edit may
-- have made of something else: Redis refuses numbers above 64 bits.
local function stream_id(text)
  local us, low = string.match(text or '', '^(%d+)%-(%d+)$')
  if not us or #us > 18 or #low > 20 or #low == 20 and low > '18446744073709551615' then return nil end
  return text
end
