-- list: a page of the jobs of one source. Reads only.
--
-- KEYS[1] jobs    stream, fresh jobs
-- KEYS[2] held    hash, id -> record
-- KEYS[3] due     sorted set, score = ms
-- KEYS[4] prio    sorted set, score = priority and ms
-- KEYS[5] leases  sorted set, score = deadline ms
-- KEYS[6] runs    hash, id -> run entry
-- KEYS[7] meta    hash
-- KEYS[8] done    hash, id -> record of a job that is over
-- KEYS[9] done_at sorted set, score = ms until which it is kept
-- ARGV[1] source  fresh | due, delayed, parked, prio, lapsed, done: those of a sorted
--                 set | running: those of ARGV[5..] that run
-- ARGV[2] score   of the last member of the page before, or ""
-- ARGV[3] id      of the last job of the page before, or ""
-- ARGV[4] count   jobs to look at, at most
-- ARGV[5..]       ids
--
-- returns {now ms, score and id to go on after, or "" and "" at the end, then per
-- job: id, record, score or "", run entry or ""}
-- include: time
-- include: head
-- include: entry
-- include: records
-- include: parked

local source, last_score, last_id, count = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local now_text = num(math.floor(now_us() / 1000))
local reply = { now_text, '', '' }
local read, bytes, max_bytes = 0, 0, 1000000

-- page_size is how many records to read next: four show how large they are, and
-- 32 cost little even if the next ones are larger.
local function page_size(left)
  if read == 0 then return math.min(left, 4) end
  return math.min(left, 32, math.floor((max_bytes - bytes) * read / math.max(bytes, 1)) + 1)
end

-- full says that the reply is large enough: little more than a megabyte.
local function full()
  return bytes >= max_bytes
end

local function add(id, record, score_text, entry_text)
  read = read + 1
  bytes = bytes + #record
  for _, part in ipairs({ id, record, score_text or '', entry_text or '' }) do reply[#reply + 1] = part end
end

-- rank_after is how many members of a sorted set come before the next page. The
-- last member may have gone since, so its place is searched for.
local function rank_after(key)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. ARGV[2])
  local high = redis.call('ZCOUNT', key, '-inf', ARGV[2])
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZRANGE', key, middle, middle)[1] > last_id then high = middle else low = middle + 1 end
  end
  return low
end

local function list_set(key, first_rank, most)
  local rank = math.max(first_rank, last_id ~= '' and rank_after(key) or 0)
  local left = math.min(count, most - rank)
  while left > 0 and not full() do
    local members = redis.call('ZRANGE', key, rank, rank + page_size(left) - 1, 'WITHSCORES')
    local ids = {}
    for i = 1, #members, 2 do ids[#ids + 1] = members[i] end
    local found = source == 'done' and redis.call('HMGET', KEYS[8], unpack(ids)) or records(KEYS[1], KEYS[2], ids)
    local entries = redis.call('HMGET', KEYS[6], unpack(ids))
    for i, id in ipairs(ids) do
      if full() then return end
      if found[i] then add(id, found[i], members[2 * i], entries[i]) end
      reply[2], reply[3] = members[2 * i], id
      rank, left = rank + 1, left - 1
    end
  end
  if rank >= most then reply[2], reply[3] = '', '' end
end

local function list_fresh()
  local from = last_id
  if from == '' then from = stream_id(redis.call('HGET', KEYS[7], 'cursor')) or '' end
  local left = count
  while left > 0 and not full() do
    local page = page_size(left)
    local entries = redis.call('XRANGE', KEYS[1], from == '' and '-' or '(' .. string.format('%s', from), '+', 'COUNT', page)
    local ids = {}
    for i, entry in ipairs(entries) do ids[i] = entry[1] end
    local leased = #ids > 0 and redis.call('ZMSCORE', KEYS[5], unpack(ids))
    for i, id in ipairs(ids) do
      if full() then return end
      if not leased[i] then add(id, entry_record(entries[i]), '', '') end
      from, left = id, left - 1
      reply[3] = from
    end
    if #ids < page then
      reply[3] = ''
      return
    end
  end
end

if source == 'fresh' then
  list_fresh()
elseif source == 'running' then
  for i = 5, #ARGV do
    local id = ARGV[i]
    local deadline = redis.call('ZSCORE', KEYS[5], id)
    if deadline and tonumber(deadline) > tonumber(now_text) then
      local record = records(KEYS[1], KEYS[2], { id })[1]
      if record then add(id, record, deadline, redis.call('HGET', KEYS[6], id)) end
    end
    reply[3] = id
    if full() then break end
  end
elseif source == 'prio' then
  list_set(KEYS[4], 0, redis.call('ZCARD', KEYS[4]))
elseif source == 'lapsed' then
  list_set(KEYS[5], 0, redis.call('ZCOUNT', KEYS[5], '-inf', now_text))
elseif source == 'due' then
  list_set(KEYS[3], 0, redis.call('ZCOUNT', KEYS[3], '-inf', now_text))
elseif source == 'done' then
  list_set(KEYS[9], redis.call('ZCOUNT', KEYS[9], '-inf', now_text), redis.call('ZCARD', KEYS[9]))
elseif source == 'parked' then
  list_set(KEYS[3], redis.call('ZCOUNT', KEYS[3], '-inf', '(' .. parked_text), redis.call('ZCARD', KEYS[3]))
else
  list_set(KEYS[3], redis.call('ZCOUNT', KEYS[3], '-inf', now_text), redis.call('ZCOUNT', KEYS[3], '-inf', '(' .. parked_text))
end
return reply
