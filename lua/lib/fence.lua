-- fence tells which callers still hold their lease: "k" holds it, "c" holds it
-- and is to be cancelled, "l" lost it. Only "k" and "c" may enter a write. It
-- also returns the run entries to put back: a holder that calls is alive, so
-- the crash that was counted against its job is taken back, once.
local function fence(leases, runs, ids, tokens)
  local entries = redis.call('HMGET', runs, unpack(ids))
  local scores = redis.call('ZMSCORE', leases, unpack(ids))
  local marks, alive, met = {}, {}, {}
  for i, id in ipairs(ids) do
    local token, crashes, flags, before = run_read(entries[i])
    marks[i] = 'l'
    if not met[id] and token == tokens[i] and scores[i] and tonumber(scores[i]) ~= 0 then
      marks[i] = string.find(flags, 'c', 1, true) and 'c' or 'k'
    elseif before ~= '' and before == tokens[i] and crashes > 0 then
      alive[#alive + 1] = id
      alive[#alive + 1] = run_text(token, crashes - 1, flags, '')
    end
    met[id] = true
  end
  return marks, alive
end

-- Redis decides at a script's first write whether memory allows it. Removing a
-- member that is not there never grows, and lets what follows run when full.
local function write_when_full(leases)
  redis.call('ZREM', leases, '')
end
