-- A run entry is "token|crashes|flags|before": the token of the lease, the
-- workers this job has taken down, its flags, and the token of a lease that ran
-- out before this one and counted a crash. Its flags are "c" if it is to be
-- cancelled, "r" if a holder before this one may have run it, and "u" if it was
-- given back and none has: such a job has not started. After the fourth part comes,
-- if the run has told of any, its progress: " percent note". It has no "|", so that
-- those who know of four parts keep it.
local function run_read(entry_text)
  if not entry_text then return nil, 0, '', '', '' end
  local token, crashes, flags, before, progress = string.match(entry_text, '^([^|]*)|(%d+)|([^|]*)|([^| ]*)([^|]*)$')
  if not token then return nil, 0, '', '', '' end
  return token, tonumber(crashes), flags, before, progress
end

local function run_text(token, crashes, flags_s, before_token, progress_text)
  return token .. '|' .. num(crashes) .. '|' .. flags_s .. '|' .. before_token .. progress_text
end
