-- The head of a record (docs/storage.md) as priority, started, crashes,
-- max crashes, visibility ms, due ms. The reader is total: what it cannot read
-- is all zeros, and Go, which reads the whole record, buries it as corrupt.
local function head_read(record)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags then return 0, false, 0, 0, 0, 0 end
  if flags < 10 then return flags, false, 0, 0, 0, 0 end -- most of them
  local priority = flags % 16
  if priority > 9 then priority = 9 end
  local started = math.floor(flags / 16) % 2 == 1
  if math.floor(flags / 32) % 2 == 0 or #record < 14 then return priority, started, 0, 0, 0, 0 end
  local crashes, max, v1, v2, v3, v4, d1, d2, d3, d4, d5, d6 = string.byte(record, 3, 14)
  local visibility = ((v1 * 256 + v2) * 256 + v3) * 256 + v4
  local due = ((((d1 * 256 + d2) * 256 + d3) * 256 + d4) * 256 + d5) * 256 + d6
  return priority, started, crashes, max, visibility, due
end

-- head_due writes the due time, which only the server's clock can tell, into a
-- record with a long head. One of another version stays as it is.
local function head_due(record, ms)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags or math.floor(flags / 32) % 2 == 0 or #record < 14 then return record end
  local bytes = {}
  for i = 6, 1, -1 do
    bytes[i] = ms % 256
    ms = math.floor(ms / 256)
  end
  return string.sub(record, 1, 8) .. string.char(unpack(bytes)) .. string.sub(record, 15)
end

-- Priorities sort before ages: the highest first, the oldest first within one.
local function prio_text(priority, ms)
  return num((9 - priority) * 10000000000000 + ms)
end

-- head_run writes what a run entry knew into a long head: the crashes, and that
-- the job has been started.
local function head_run(record, crashes)
  local version, flags = string.byte(record, 1, 2)
  if version ~= 1 or not flags or math.floor(flags / 32) % 2 == 0 or #record < 14 then return record end
  if math.floor(flags / 16) % 2 == 0 then flags = flags + 16 end
  return string.char(1, flags, math.min(crashes, 255)) .. string.sub(record, 4)
end
