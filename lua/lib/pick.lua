-- What a lease call has picked so far, and what it may still pick.
local picked, bytes, max_bytes = 0, 0, 1000000 -- at most so many bytes
local token, suspects, default_max, default_visibility
local run_args, lease_args, kept, reply = {}, {}, {}, {}
local first_run_text, last_visibility, deadline_text -- what most jobs of a call have alike
local crashed, dropped = 0, {}

-- pick_open says whether one more job fits: a call never answers with much
-- more than a megabyte, but always with one job.
local function pick_open()
  return picked == 0 or bytes < max_bytes
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
  local _, _, crashes, head_max, visibility = head_read(record)
  local cancel_s, flags_s, before_token, progress_text = '', '', '', ''
  if entry_text then
    local _, run_crashes, run_flags_s, run_before_token, run_progress_text = run_read(entry_text)
    if string.find(run_flags_s, 'c', 1, true) then cancel_s = 'c' end
    flags_s = string.find(run_flags_s, 'u', 1, true) and cancel_s or cancel_s .. 'r'
    before_token, progress_text = run_before_token, run_progress_text
    if crashes < run_crashes then crashes = run_crashes end
  end
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
  if visibility ~= last_visibility then
    last_visibility, deadline_text = visibility, num(now + visibility)
  end
  local new_text, crashes_text
  if crashes == 0 and flags_s == '' and before_token == '' and progress_text == '' then
    first_run_text = first_run_text or run_text(token, 0, '', '', '')
    new_text, crashes_text = first_run_text, '0'
  else
    new_text, crashes_text = run_text(token, crashes, flags_s, before_token, progress_text), num(crashes)
  end
  picked = picked + 1
  local at = 2 * picked
  run_args[at - 1], run_args[at] = id, new_text
  lease_args[#lease_args + 1] = deadline_text
  lease_args[#lease_args + 1] = id
  at = 4 * picked -- after the three that the answer begins with
  reply[at], reply[at + 1], reply[at + 2], reply[at + 3] = id, record, crashes_text, cancel_s .. mark_s .. progress_text
  kept[picked] = mark_s .. crashes_text .. ':' .. id
  bytes = bytes + #record
  return true
end
