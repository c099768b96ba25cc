-- add_plan decides what becomes of new jobs, and writes nothing: what a script does
-- beside, it checks first, too. add_write does what was planned, and begins with a
-- write that a full Redis refuses, if that is the first one; add_count counts it.
--
-- keys is a table of the queue's keys: jobs, held, due, prio, leases, runs, meta and
-- wake, and as unique how many keys of the call lie before its unique ones. list has
-- three texts for each of count jobs, from list[at] on, as the header of enqueue says;
-- last_text is the field "last" of meta. ending, if there is one, is a set of the ids
-- whose jobs this very call ends: they hold no key any more.
--
-- add_plan returns a plan, or a text: the error that the script is to answer.
local function add_plan(keys, list, at, count, us, last_text, ending)
  local now = math.floor(us / 1000)
  local ready_from = math.ceil(us / 1000)
  local plan = { now = now, waiting = redis.call('LLEN', keys.wake), healed = 0, ready = 0,
    marks = {}, holders = {}, fresh = {}, held = {}, due = {}, prio = {}, claims = {}, moved = {} }
  local last = tonumber(string.match(last_text or '', '^%d+$') or '')
  if not last then
    -- The hash was lost: ids must still rise above what the stream has seen.
    if redis.call('XLEN', keys.jobs) + redis.call('HLEN', keys.held) > 0 then plan.healed = 1 end
    local top = redis.call('XREVRANGE', keys.jobs, '+', '-', 'COUNT', 1)
    last = tonumber(top[1] and string.match(top[1][1], '^%d+') or '0')
  end
  us = math.max(us, last + 1)
  -- Above 2^53 two ids would be one. The clock gets there in the year 2255.
  if us > 9007199254740000 then return 'ERR pawl: the last id is of the year 2255' end

  -- Jobs that only enter the stream need no look at the other keys: an XADD to
  -- anything else is refused, and is the first write.
  for i = 1, count do
    if list[at + 3 * i - 1] ~= '' then
      redis.call('XLEN', keys.jobs)
      redis.call('HLEN', keys.held)
      redis.call('ZCARD', keys.due)
      redis.call('ZCARD', keys.prio)
      redis.call('ZCARD', keys.leases)
      redis.call('HLEN', keys.runs)
      break
    end
  end

  plan.first = us
  local marks, holders, fresh, held, due, prio = plan.marks, plan.holders, plan.fresh, plan.held, plan.due, plan.prio
  local taken, newest = {}, nil
  local second, second_text
  for i = 1, count do
    local low_text, record, how = list[at + 3 * i - 3], list[at + 3 * i - 2], list[at + 3 * i - 1]
    local at_second = math.floor(us / 1000000)
    if at_second ~= second then second, second_text = at_second, num(at_second) end
    -- It is num(us), at half the price.
    local id = string.format('%s%06d-%s', second_text, us - second * 1000000, low_text)
    local kind, ms, priority, unique, mode, window, change
    local holder, claim, replaced, parked
    if how ~= '' then
      kind, ms, priority, unique, mode, window, change =
        string.match(how, '^(%a) (%d+) (%d) (%d+) (%a) (%d+) ?(%a?)$')
      ms, priority, unique = tonumber(ms), tonumber(priority), tonumber(unique)
      if unique > 0 then
        if not newest then
          newest = {} -- which job of the call is the last to replace, by key
          for later = i, count do
            local wait = list[at + 3 * later - 1]
            if (string.byte(wait, -1) or 0) > 57 then
              newest[KEYS[keys.unique + tonumber(string.match(wait, '^%a %d+ %d (%d+)'))]] = later
            end
          end
        end
        local key = KEYS[keys.unique + unique]
        claim = taken[key]
        -- In words of its own: it is the fault of this job alone, and not of the queue.
        if not claim and unique_mistyped(key) then
          return table.concat({ 'WRONGTYPE of the unique key', key }, ' ')
        end
        holder = claim and claim.id or unique_holder(key, keys.jobs, keys.held, keys.runs, now)
        if holder and not claim and ending and ending[holder] then
          local _, _, till, next_id = unique_read(key)
          -- Who waits behind one that ends has the key next, and keeps it; of one that has
          -- none, its window may be left, behind which nobody waits.
          change = ''
          if next_id and redis.call('HEXISTS', keys.held, next_id) == 1 then
            holder = next_id
          elseif till <= now then
            holder = nil
          end
        end
        window = tonumber(window)
        local till = window > 0 and math.ceil(us / 1000) + window or 0
        if not holder then
          claim = { key = key, id = id, holder = id, mode = mode, till = till, target = id, new = true }
          taken[key] = claim
          plan.claims[#plan.claims + 1] = claim
        elseif change ~= '' then
          if not claim then
            -- include: unique_claim
            claim = unique_claim(key, holder, keys.jobs, keys.held, keys.due, keys.leases, keys.runs, now)
            taken[key] = claim
          end
          if claim.target then
            holder, replaced = claim.target, true
            if not claim.parked then claim.mode = mode end
          elseif claim.runs and change == 'l' then
            holder, parked = nil, true
            claim.target, claim.next_id, claim.parked, claim.new, claim.mode = id, id, true, true, 'd'
          end
          if claim.target then
            claim.till = math.max(claim.till, till)
            if not replaced or newest[key] == i and not claim.new then
              plan.claims[#plan.claims + 1] = claim
            end
          end
        end
        if not holder and (newest[key] or 0) > i then
          -- What comes later in the call replaces it before it is written.
          local later = at + 3 * newest[key]
          record = list[later - 2]
          kind, ms, priority = string.match(list[later - 1], '^(%a) (%d+) (%d)')
          ms, priority = tonumber(ms), tonumber(priority)
        end
        replaced = replaced and (newest[key] == i and not claim.new and 'now' or 'r')
      end
    end
    local from = ready_from
    if kind then from = kind == 'a' and ms or ready_from + ms end
    local later = kind and from > now and (kind == 'a' or ms > 0)
    if holder then
      marks[i] = replaced and 'r' or 'd'
      holders[#holders + 1] = holder
      if replaced == 'now' then
        -- include: head_since
        if not later then from = claim.since or now end
        held[#held + 1] = holder
        held[#held + 1] = head_since(head_due(record, from), now)
        if not claim.parked then
          plan.moved[#plan.moved + 1] = holder
          local to, score = due, num(from)
          if later then
            if not plan.nearest or from < plan.nearest then plan.nearest = from end
          else
            plan.ready = plan.ready + 1
            if priority > 0 then to, score = prio, prio_text(priority, from) end
          end
          to[#to + 1] = score
          to[#to + 1] = holder
        end
      end
    else
      marks[i] = '.'
      us = us + 1
      if parked then
        held[#held + 1] = id
        held[#held + 1] = head_due(record, later and from or now)
        due[#due + 1] = num(parked_from + now)
        due[#due + 1] = id
      elseif later then
        held[#held + 1] = id
        held[#held + 1] = head_due(record, from)
        due[#due + 1] = num(from)
        due[#due + 1] = id
        if not plan.nearest or from < plan.nearest then plan.nearest = from end
      elseif kind and priority > 0 then
        plan.ready = plan.ready + 1
        held[#held + 1] = id
        held[#held + 1] = head_due(record, now)
        prio[#prio + 1] = prio_text(priority, now)
        prio[#prio + 1] = id
      else
        fresh[#fresh + 1] = id
        fresh[#fresh + 1] = record
      end
    end
  end
  plan.added = us - plan.first
  plan.healed = plan.healed + unique_orphans
  plan.ready = plan.ready + #fresh / 2
  return plan
end

local function add_jobs(keys, plan)
  local fresh, moved = plan.fresh, plan.moved
  for i = 1, #fresh, 2 do
    redis.call('XADD', keys.jobs, fresh[i], 'r', fresh[i + 1])
  end
  if #plan.held > 0 then redis.call('HSET', keys.held, unpack(plan.held)) end
  if #moved > 0 then
    redis.call('XDEL', keys.jobs, unpack(moved))
    redis.call('ZREM', keys.due, unpack(moved))
    redis.call('ZREM', keys.prio, unpack(moved))
    redis.call('ZREM', keys.leases, unpack(moved))
    redis.call('HDEL', keys.runs, unpack(moved))
  end
  if #plan.due > 0 then redis.call('ZADD', keys.due, unpack(plan.due)) end
  if #plan.prio > 0 then redis.call('ZADD', keys.prio, unpack(plan.prio)) end
end

local function add_claims(plan)
  for _, claim in ipairs(plan.claims) do
    redis.call('SET', claim.key, unique_text(claim.holder, claim.mode, claim.till, claim.next_id))
  end
end

local function add_write(keys, plan)
  add_jobs(keys, plan)
  add_claims(plan)
end

-- enqueued_text is the field "n:enqueued" of meta as it was.
local function add_count(keys, plan, enqueued_text)
  if plan.added > 0 then
    local sum_text = tally_sum(enqueued_text, plan.added)
    redis.call('HSET', keys.meta, 'last', num(plan.first + plan.added - 1), 'n:enqueued', sum_text or enqueued_text)
    if not sum_text then tally(keys.meta, 'n:enqueued', plan.added) end
  end
  if #plan.holders > 0 then tally(keys.meta, 'n:duplicate', #plan.holders) end
  if plan.healed > 0 then tally(keys.meta, 'n:healed', plan.healed) end
  local ready = plan.ready
  if plan.nearest and wake_due(keys.due, plan.nearest, plan.now) then ready = ready + 1 end
  wake_push(keys.wake, ready, plan.waiting)
end
