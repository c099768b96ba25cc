-- keys_end notes what the end of a job makes of the keys that it holds. A call says
-- of each job "<unique> <idempotency> <ms>": where they lie behind its fixed keys (0,
-- or left out: it has none), and for how long the latter is done from now on.
local frees, passes, idems = {}, {}, {}
local function keys_end(id, word, fixed)
  local unique, idem, window = string.match(word, '^(%d+) ?(%d*) ?(%d*)$')
  if unique ~= '0' then
    local key = KEYS[fixed + tonumber(unique)]
    local till, next_id = unique_owned(key, id)
    if next_id then
      passes[#passes + 1] = { key, till, next_id }
    elseif till then
      frees[#frees + 1] = { key, till }
    end
  end
  if idem ~= '' then
    idems[#idems + 1] = { KEYS[fixed + tonumber(idem)], id, tonumber(window) or 0 }
  end
end
