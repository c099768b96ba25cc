-- A job that waits behind another lies in due, with a score that no clock comes to:
-- this, and the ms at which it was last looked at. So the numbers of a queue add up
-- with it, and the time from which it may run is in its head.
local parked_from, parked_text = 1000000000000000, '1000000000000000'

local function is_parked(score_text)
  return score_text and tonumber(score_text) >= parked_from
end
