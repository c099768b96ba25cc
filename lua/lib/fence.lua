-- fence tells which callers still hold their lease: "k" holds it, "c" holds it
-- and is to be cancelled, "l" lost it. Only "k" and "c" may enter a write. It
-- also returns the run entries to put back: a holder that calls is alive, so
-- the crash that was counted against its job is taken back, once.
local function fence(leases, runs, ids, tokens)
  local entries = redis.call('HMGET', runs, unpack(ids))
  local scores = redis.call('ZMSCORE', leases, unpack(ids))
  local marks, alive, held, before_of = {}, {}, {}, {}
  local plain_token, plain_text
  for i, id in ipairs(ids) do
    if tokens[i] ~= plain_token then
      plain_token = tokens[i]
      plain_text = run_text(plain_token, 0, '', '', '')
    end
    local token, flags = plain_token, ''
    if entries[i] ~= plain_text then -- most are
      local _, before
      token, _, flags, before = run_read(entries[i])
      if before ~= '' then before_of[i] = before end
    end
    marks[i] = 'l'
    if not held[id] and token == tokens[i] and scores[i] and tonumber(scores[i]) ~= 0 then
      marks[i] = string.find(flags, 'c', 1, true) and 'c' or 'k'
      held[id] = true
    end
  end
  for i, before in pairs(before_of) do
    local id = ids[i]
    -- Not of a job that this call holds as well: it may be about to end it.
    if before == tokens[i] and not held[id] then
      local token, crashes, flags, _, progress_text = run_read(entries[i])
      if crashes > 0 then
        alive[#alive + 1] = id
        alive[#alive + 1] = run_text(token, crashes - 1, flags, '', progress_text)
      end
    end
  end
  return marks, alive
end
