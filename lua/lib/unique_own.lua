-- A unique key holds "<id> <mode> <until>": the job that holds it, "d" until it
-- is done or "s" until it has started, and the ms to which its window lasts
-- whatever becomes of the job (0: no window). A fourth word is the id of the job
-- that waits behind it, and has the key next.
local function unique_parse(value_text)
  if not value_text then return nil, 'd', 0 end
  local id, mode, till = string.match(value_text, '^(%S+) (%a) (%d+)$')
  local next_id
  if not id then id, mode, till, next_id = string.match(value_text, '^(%S+) (%a) (%d+) (%S+)$') end
  if not id then return nil, 'd', 0 end
  return id, mode, tonumber(till), next_id
end

local function unique_read(key)
  return unique_parse(redis.call('GET', key))
end

-- unique_mistyped is whether something else has made the key a list, say.
local function unique_mistyped(key)
  return type(redis.pcall('GET', key)) == 'table'
end

-- unique_owned is the end of the key's window if id holds the key, else nil, and
-- who has it next. A key that something else has made a list is not the job's, and
-- must not stop the jobs that end with it.
local function unique_owned(key, id)
  local value_text = redis.pcall('GET', key)
  if type(value_text) == 'table' then return nil end
  local holder, _, till, next_id = unique_parse(value_text)
  if holder ~= id then return nil end
  return till, next_id
end

-- unique_free ends a hold that unique_owned has confirmed.
local function unique_free(key, till, now)
  if till > now then
    redis.call('PEXPIREAT', key, num(till))
  else
    redis.call('DEL', key)
  end
end
