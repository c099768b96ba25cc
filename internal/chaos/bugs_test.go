package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lose cuts calls of a script again and again, each in one way.
func lose(script, how string, times int) (plan []Step) {
	for range times {
		plan = append(plan, Step{After: 60 * time.Millisecond, Kind: "call", Script: script, K: 1, How: how})
	}
	return plan
}

// strike is a fault that comes several times, to each worker in turn.
func strike(kind string, after, lasts time.Duration, times int) (plan []Step) {
	for i := range times {
		plan = append(plan, Step{After: after, Kind: kind, Target: i, For: lasts})
	}
	return plan
}

// late has calls arrive after their answers were given up, and newer calls made.
func late(script string, times int) (plan []Step) {
	for range times {
		plan = append(plan, Step{After: 30 * time.Millisecond, Kind: "call", Script: script, K: 1, How: "late"},
			Step{After: 120 * time.Millisecond, Kind: "release"})
	}
	return plan
}

const bugLease = 400 * time.Millisecond

var (
	kills = strike("kill", 250*time.Millisecond, 0, 5)
	stops = strike("stop", 450*time.Millisecond, 2*bugLease, 2)
	terms = strike("term", 250*time.Millisecond, 0, 5)
	calm  = []Step{{After: time.Millisecond, Kind: "flush"}}
)

// plantedBugs are bugs of the scripts, each with the faults that it takes to be
// seen and the invariants that see it.
var plantedBugs = []struct {
	name string
	bugs []Bug
	plan []Step
	only string // shapes
	keys bool   // for each job
	idem bool   // for each job an idempotency key
	jobs int    // 80 if 0
	want []string
}{
	{name: "lanes have no memory", bugs: []Bug{{"", "redis.call('SET', key, seq_text .. ' ' .. answer, 'PX', 120000)", ""}},
		plan: lose("enqueue", "no reply", 15), want: []string{UnknownOnce}},
	{name: "lanes compare for equality alone", bugs: []Bug{{"", "if not last or last < seq then return nil end\n  if last > seq then return 'stale' end", "if last ~= seq then return nil end"}},
		plan: late("enqueue", 8), want: []string{UnknownOnce}},
	{name: "settle keeps no answer", bugs: []Bug{{"settle", "lane_keep(KEYS[7], ARGV[1], answer)", ""}},
		plan: lose("settle", "no reply", 15), only: "plain", want: []string{HonestErrors}},
	{name: "a lease that is sent again takes other jobs", bugs: []Bug{{"lease", "if list then", "if false then"}},
		plan: lose("lease", "no reply", 15), only: "plain", want: []string{RetryLaw}},
	{name: "settle takes any token", bugs: []Bug{{"settle", "and token == tokens[i] and", "and token and"}},
		plan: stops, only: "deaf", jobs: 60, want: []string{Fenced}},
	{name: "retry takes any token", bugs: []Bug{{"retry", "and token == tokens[i] and", "and token and"}},
		plan: stops, only: "snail", jobs: 60, want: []string{Fenced}},
	{name: "extend renews nothing", bugs: []Bug{{"extend", "redis.call('ZADD', KEYS[1], 'XX', unpack(renewed))", ""}},
		plan: calm, only: "slow", jobs: 12, want: []string{EffectOnce}},
	{name: "a lease is taken over too soon", bugs: []Bug{{"lease", "KEYS[5], '-inf', num(now), 'WITHSCORES'", "KEYS[5], '-inf', num(now + 350), 'WITHSCORES'"}},
		plan: kills, only: "long", want: []string{OneHolder}},
	{name: "a lease ends the job", bugs: []Bug{{"lease", "redis.call('HSET', KEYS[6], unpack(run_args))",
		"redis.call('HSET', KEYS[6], unpack(run_args)) for i = 1, #run_args, 2 do redis.call('XDEL', KEYS[1], run_args[i]) redis.call('HDEL', KEYS[2], run_args[i]) end"}},
		plan: kills, only: "long", want: []string{NoLoss}},
	{name: "release gives nothing back", bugs: []Bug{{"release", "redis.call('ZADD', KEYS[1], 'XX', unpack(back))", ""}},
		plan: terms, only: "slow", want: []string{RetryLaw}},
	{name: "giving back counts as a crash", bugs: []Bug{{"lease", "tonumber(page[2 * i]) ~= 0, leased_from", "true, leased_from"}},
		plan: terms, only: "slow", want: []string{RetryLaw}},
	{name: "crashes are not counted", bugs: []Bug{{"lease", "if expired then crashes = crashes + 1 end", ""}},
		plan: kills, only: "long", want: []string{RetryLaw}},
	{name: "tokens do not rise", bugs: []Bug{{"lease", "math.max(us, tonumber(string.match(meta[3] or '', '^%d+$') or '0') + 1)", "math.floor(us / 1000000) * 1000000"}},
		plan: calm, only: "flaky", want: []string{Fenced}},
	{name: "settle leaves the lease", bugs: []Bug{{"settle", "redis.call('ZREM', KEYS[3], unpack(ended))", ""}},
		plan: kills, want: []string{OneState}},
	{name: "retry leaves the lease", bugs: []Bug{{"retry", "redis.call('ZREM', KEYS[4], unpack(back))", ""}},
		plan: calm, only: "doomed flaky", want: []string{RetryLaw}},
	{name: "a retry comes too soon", bugs: []Bug{{"retry", "local at = from + tonumber(ARGV[7 * i - 1])", "local at = from + math.floor(tonumber(ARGV[7 * i - 1]) / 2)"}},
		plan: calm, only: "doomed flaky after", want: []string{RetryLaw}},
	{name: "a due job is leased early", bugs: []Bug{{"lease", "take_waiting(KEYS[3], num(now)", "take_waiting(KEYS[3], num(now + 300)"}},
		plan: calm, only: "snooze after", want: []string{RetryLaw}},
	{name: "bury frees no key", bugs: []Bug{{"bury", "unique_free(free[1], free[2], now)", "local _ = free"}},
		plan: calm, only: "permanent", want: []string{OneState}},
	{name: "bury leaves the job", bugs: []Bug{{"bury", "redis.call('XDEL', KEYS[1], unpack(gone))", ""}},
		plan: calm, only: "permanent", want: []string{OneState}},
	{name: "bury buries nothing", bugs: []Bug{{"bury", "redis.call('HSET', KEYS[6], id, redis.call('XADD', KEYS[5], '*', 'i', id, 'p', ARGV[5 * i]))", ""}},
		plan: calm, only: "permanent", want: []string{NoLoss, Conservation}},
	{name: "redrive copies", bugs: []Bug{{"redrive", "redis.call('XDEL', KEYS[6], unpack(graves))", ""}, {"redrive", "redis.call('HDEL', KEYS[7], unpack(moved))", ""}},
		plan: lose("redrive", "no reply", 10), only: "permanent doomed", want: []string{OneTombstone}},
	{name: "redrive forgets the record", bugs: []Bug{{"redrive", "redis.call('HSET', KEYS[2], unpack(held))", ""}},
		plan: calm, only: "permanent doomed", want: []string{NoLoss, OneState}},
	{name: "a duplicate is counted twice", bugs: []Bug{{"enqueue", "'n:duplicate', #plan.holders", "'n:duplicate', 2 * #plan.holders"}},
		plan: calm, only: "long", want: []string{Conservation}},
	{name: "settle counts twice", bugs: []Bug{{"settle", "(counts[counter] or 0) + 1", "(counts[counter] or 0) + 2"}},
		plan: kills, want: []string{Conservation}},
	{name: "a redrive that is sent again counts again", bugs: []Bug{{"redrive", "local seen = not dry and lane_seen(KEYS[11], ARGV[1])", "local seen = not dry and lane_seen(KEYS[11], ARGV[1]) if seen then tally(KEYS[8], 'n:redriven', 1) end"}},
		plan: lose("redrive", "no reply", 12), only: "permanent", want: []string{Conservation}},
	{name: "a held key can be taken", bugs: []Bug{{"enqueue", "  return id\nend\n\nlocal function unique_text", "  return nil\nend\n\nlocal function unique_text"}},
		plan: calm, only: "long", want: []string{UniqueKey}},
	{name: "a key has no window", bugs: []Bug{{"", "if now < till then return id end", ""}},
		plan: calm, only: "plain", jobs: 200, want: []string{UniqueKey}},
	{name: "a redrive takes a key that is held", bugs: []Bug{{"redrive", "if holder and holder ~= id then", "if false then"}},
		plan: calm, only: "permanent slow long", keys: true, jobs: 150, want: []string{UniqueKey}},
	{name: "an idempotency key that is in use can be taken", bugs: []Bug{{"claim", "return score and tonumber(score) ~= 0", "return false"}},
		plan: calm, only: "long", idem: true, want: []string{Idempotent}},
	{name: "an idempotency key that is done is forgotten", bugs: []Bug{{"settle", "tonumber(window) or 0 }", "0 }"}},
		plan: calm, only: "plain", idem: true, jobs: 200, want: []string{Idempotent}},
	{name: "bury leaves the idempotency key", bugs: []Bug{{"bury", "idem_end(e[1], e[2], 0, KEYS[3], now)", "local _ = e"}},
		plan: calm, only: "permanent", idem: true, want: []string{OneState}},
	{name: "cancel answers and does nothing", bugs: []Bug{{"cancel", "erase(KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], { id })", ""}},
		plan: calm, only: "doomed flaky snooze", want: []string{HonestErrors, Conservation}},
	{name: "a delayed job has no record", bugs: []Bug{{"enqueue", "redis.call('HSET', keys.held, unpack(plan.held))", ""}},
		plan: calm, want: []string{NoLoss}},
	{name: "an enqueue is answered before it is made", bugs: []Bug{{"enqueue", "redis.call('XADD', keys.jobs, fresh[i], 'r', fresh[i + 1])", "if plan.first % 16 > 0 then redis.call('XADD', keys.jobs, fresh[i], 'r', fresh[i + 1]) end"}},
		plan: calm, want: []string{NoLoss}},
}

// Such a bug is seen when a fault falls into the right moment: mostly at once, and
// if not, in one of the next runs.
func TestChaosCatchesPlantedBugs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds for each bug")
	}
	const tries = 15
	for i, bug := range plantedBugs {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			opts := Options{Jobs: bug.jobs, Window: 1500 * time.Millisecond, Visibility: bugLease,
				Plan: bug.plan, Only: bug.only, Keyed: bug.keys, Idem: bug.idem, Bugs: bug.bugs, Patience: 3 * time.Second}
			if bug.jobs == 0 {
				opts.Jobs = 80
			}
			for try := range tries {
				opts.Seed = uint64(100*try + i + 1)
				result := Run(t, opts)
				require.Empty(t, result.Errors)
				require.Empty(t, result.Noise)
				missed := result.missed(bug.want)
				t.Logf("missed %q in %s", missed, result.summary())
				if len(missed) == 0 {
					return
				}
			}
			require.Fail(t, "not caught")
		})
	}
}

// missed is the invariants that were to be broken and are not.
func (r Result) missed(want []string) (names []string) {
	for _, name := range want {
		if !slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Invariant == name }) {
			names = append(names, name)
		}
	}
	return names
}
