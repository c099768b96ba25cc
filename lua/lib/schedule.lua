-- The state of a schedule is "<rev> <anchor> <next> <last> <job> <fired> <missed>
-- <skipped> <paused>": a text that each definition has anew; the ms of its first
-- registration, of its next tick and of the last one (0: none yet); the id of the job
-- that stood for that ("-": none); how many ticks made a job, passed without one, and
-- were skipped; 1 while it is paused. No number has more than 15 digits. It changes
-- whenever the schedule does: who has seen it can tell whether the schedule is what it was.
local function schedule_read(state_text)
  local rev_s, anchor_s, next_s, last_s, job_id, fired, missed, skipped, paused_s = string.match(state_text or '',
    '^(%w+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) ([01])$')
  if not rev_s or math.max(#anchor_s, #next_s, #last_s, #fired, #missed, #skipped) > 15 then return nil end
  return { head_s = rev_s .. ' ' .. anchor_s, next_s = next_s, last_s = last_s, job_id = job_id,
    fired = tonumber(fired), missed = tonumber(missed), skipped = tonumber(skipped), paused_s = paused_s }
end

-- schedule_wait_text is the ms until the first tick of those in a sorted set, 0 if it is
-- due, or "-": there is none.
local function schedule_wait_text(at, now)
  local first = redis.pcall('ZRANGE', at, 0, 0, 'WITHSCORES')
  local ms = tonumber(first[2] or '')
  if not ms or ms > 999999999999999 then return '-' end
  return num(math.max(0, ms - now))
end
