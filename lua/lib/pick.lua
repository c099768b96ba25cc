-- What a lease call has picked so far, and what it may still pick.
local picked, bytes, max_bytes = {}, 0, 1000000
local token, suspects, default_max, default_visibility
local run_args, lease_args, kept = {}, {}, {}
local crashed, dropped = 0, {}

-- pick_open says whether one more job fits: a call never answers with much
-- more than a megabyte, but always with one job.
local function pick_open()
  return #picked == 0 or bytes < max_bytes
end

-- page_size is how many records to read next, after some of a size: four show
-- how large they are, and 32 cost little even if the next ones are larger.
local function page_size(share, read, size)
  if read == 0 then return math.min(share, 4) end
  return math.min(share, 32, math.floor((max_bytes - size) * read / math.max(size, 1)) + 1)
end

-- skip_cost is what passing over a record takes off what a call may look at.
local function skip_cost(record)
  return 1 + math.floor(#record / 16384)
end

-- pick leases one job, unless it is a suspect (its next crash would be its last)
-- and the caller has one already: of two that run beside each other the poison
-- job would take the other with it.
local function pick(id, record, entry_text, expired, now)
  local _, _, head_crashes, head_max, visibility = head_read(record)
  local _, crashes, flags_s, before_token = run_read(entry_text)
  flags_s = string.find(flags_s, 'c', 1, true) and 'c' or ''
  if crashes < head_crashes then crashes = head_crashes end
  if expired then crashes = crashes + 1 end
  local max = head_max > 0 and head_max or default_max
  local mark_s = expired and 'x' or ''
  if crashes >= 1 and crashes >= max - 1 then
    if suspects < 1 then return false end
    suspects = suspects - 1
    mark_s = mark_s .. 's'
  end
  if expired then
    crashed = crashed + 1
    before_token = run_read(entry_text) or ''
  end
  if visibility == 0 then visibility = default_visibility end
  run_args[#run_args + 1] = id
  run_args[#run_args + 1] = run_text(token, crashes, flags_s, before_token)
  lease_args[#lease_args + 1] = num(now + visibility)
  lease_args[#lease_args + 1] = id
  picked[#picked + 1] = { id, record, num(crashes), flags_s .. mark_s }
  kept[#kept + 1] = mark_s .. num(crashes) .. ':' .. id
  bytes = bytes + #record
  return true
end
