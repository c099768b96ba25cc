package chaos

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// past is a small history that is as it should be, to plant violations in. Times
// are ms after epoch.
type past struct {
	events []Event
	state  State
}

const epoch = 1_000_000

// id is the id of the job that was enqueued at a time.
func id(ms int64) string {
	hex := []byte("000000000000")
	for i, n := len(hex)-1, epoch+ms; n > 0; i, n = i-1, n/16 {
		hex[i] = "0123456789abcdef"[n%16]
	}
	return string(hex[:8]) + "-" + string(hex[8:]) + "-7000-8000-000000000000"
}

func (p *past) add(at int64, process string, op Op, e Event) *Event {
	e.At, e.Process, e.Op = epoch+at, process, op
	if e.Type == "" {
		e.Type = OK
	}
	p.events = append(p.events, e)
	return &p.events[len(p.events)-1]
}

// enqueue is a call and its answer.
func (p *past) enqueue(at int64, ref string, invoke Event) string {
	invoke.Type, invoke.Ref = Invoke, ref
	p.add(at, "producer", Enqueue, invoke)
	p.add(at+1, "producer", Enqueue, Event{Ref: ref, Job: id(at)})
	p.state.Stats.Total.Enqueued++
	return id(at)
}

// run is a start, an effect and, unless op is "", an outcome.
func (p *past) run(job, ref string, from, to int64, worker string, attempt int, class string, op Op, more Event) {
	s := Event{Job: job, Run: (epoch + from) * 1000, Attempt: attempt, MaxAttempts: 3, Redrives: more.Redrives, Crashes: more.Crashes}
	start := s
	start.Ref, start.Due, start.Lease = ref, epoch+from, 1000
	if more.Due != 0 {
		start.Due = epoch + more.Due
	}
	p.add(from, worker, Start, start)
	effect := s
	effect.Class, effect.Least, effect.Most, effect.Cause = class, 50, 100, more.Cause
	p.add(to, worker, Effect, effect)
	if op != "" {
		end := s
		end.Delay = more.Delay
		p.add(to+1, worker, op, end)
	}
}

// clean is a job that fails once and is then done; one that dies, is redriven and
// done; one whose worker is killed; one that holds a key after it; one that stays
// dead; and one that is cancelled.
func clean() *past {
	p := &past{}
	a := p.enqueue(0, "a", Event{Key: "k"})
	p.run(a, "a", 10, 20, "w1", 1, "retry", Retry, Event{Delay: 80})
	p.run(a, "a", 105, 110, "w1", 2, "done", Done, Event{Due: 101})
	b := p.enqueue(200, "b", Event{Key: "k", Delay: 50})
	p.run(b, "b", 260, 270, "w1", 1, "dead", Dead, Event{Due: 250})
	p.add(300, "producer", Redrive, Event{Type: Invoke, Ref: "r1", Job: b})
	p.add(301, "producer", Redrive, Event{Ref: "r1", Job: b})
	p.run(b, "b", 310, 320, "w1", 1, "done", Done, Event{Redrives: 1})
	c := p.enqueue(400, "c", Event{})
	p.add(405, "w2", Start, Event{Ref: "c", Job: c, Run: (epoch + 405) * 1000, Attempt: 1, MaxAttempts: 3, Due: epoch + 400, Lease: 1000})
	p.add(500, "runner", Fault, Event{Class: "kill", Ref: "w2"})
	p.add(1410, "w1", Crashed, Event{Job: c, Run: (epoch + 1410) * 1000})
	p.run(c, "c", 1410, 1420, "w1", 1, "done", Done, Event{Crashes: 1, Due: 400})
	d := p.enqueue(1500, "d", Event{})
	p.run(d, "d", 1510, 1520, "w1", 1, "dead", Dead, Event{})
	p.state.Dead = []Tombstone{{Job: d, Ref: "d", Reason: "permanent", Attempt: 1, MaxAttempts: 3, DiedAt: epoch + 1521}}
	e := p.enqueue(1600, "e", Event{})
	p.add(1610, "producer", Cancel, Event{Type: Invoke, Ref: "c1", Job: e})
	p.add(1611, "producer", Cancel, Event{Ref: "c1", Job: e})
	p.state.Stats.Dead = 1
	p.state.Stats.Total = pawl.Counters{Enqueued: 5, Started: 7, Done: 3, Failed: 3, Retried: 1, Dead: 2, Redriven: 1, Cancelled: 1, Crashed: 1}
	return p
}

func TestACleanHistoryPasses(t *testing.T) {
	t.Parallel()
	p := clean()
	require.Empty(t, Check(p.events, p.state))
	require.Empty(t, Check(nil, State{}))
}

func TestAHistoryThatEndsAnywherePasses(t *testing.T) {
	t.Parallel()
	p := clean()
	p.state.Stats.Total.Enqueued++ // of the call that is not answered
	p.state.Stats.Total.Done++
	p.add(1700, "producer", Enqueue, Event{Type: Invoke, Ref: "f"})
	p.run(id(1700), "f", 1710, 1720, "w1", 1, "done", "", Event{})
	p.add(1721, "runner", Fault, Event{Class: "kill", Ref: "w1"}) // before it could tell
	require.Empty(t, Check(p.events, p.state))
}

// A job that is put back because its key is in use, and skipped once it is done; and
// one that runs under the key after the window.
func TestAHistoryWithSkippedJobsPasses(t *testing.T) {
	t.Parallel()
	p := clean()
	key := Event{Idem: "i", Keep: 100}
	f, g, h := p.enqueue(1700, "f", key), p.enqueue(1701, "g", key), p.enqueue(1702, "h", key)
	p.run(f, "f", 1710, 1720, "w1", 1, "done", Done, Event{})
	p.add(1715, "w1", Snooze, Event{Job: g, Run: (epoch + 1712) * 1000, Delay: 50})
	p.add(1770, "w1", Skip, Event{Job: g, Run: (epoch + 1766) * 1000})
	p.run(h, "h", 1830, 1840, "w1", 1, "done", Done, Event{})
	total := &p.state.Stats.Total
	total.Done, total.Skipped, total.Snoozed = total.Done+3, 1, 1
	require.Empty(t, Check(p.events, p.state))
	total.Skipped = 0
	require.NotEmpty(t, Check(p.events, p.state))
}

// planted is a violation of each invariant, in at least two ways.
var planted = []struct {
	invariant, name string
	plant           func(p *past)
}{
	{NoLoss, "an acknowledged job is nowhere", func(p *past) {
		p.enqueue(1700, "f", Event{})
		p.state.Stats.Total.Discarded++ // or conservation says so
	}},
	{NoLoss, "a job that was to be tried again is nowhere", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 1720, "w1", 1, "retry", Retry, Event{Delay: 60})
	}},
	{NoLoss, "the job of a killed worker is nowhere", func(p *past) {
		f := p.enqueue(410, "f", Event{})
		p.add(420, "w2", Start, Event{Ref: "f", Job: f, Run: (epoch + 420) * 1000, Attempt: 1, MaxAttempts: 3, Due: epoch + 410, Lease: 1000})
	}},
	{NoPhantom, "a job that nobody enqueued runs", func(p *past) {
		p.run(id(1700), "f", 1710, 1720, "w1", 1, "done", Done, Event{})
	}},
	{NoPhantom, "a job that nobody enqueued is dead", func(p *past) {
		p.state.Dead = append(p.state.Dead, Tombstone{Job: id(1700), Ref: "f", Reason: "permanent", DiedAt: 1, MaxAttempts: 3})
	}},
	{UnknownOnce, "a call without an answer made two jobs", func(p *past) {
		p.add(1700, "producer", Enqueue, Event{Type: Invoke, Ref: "f"})
		p.add(1701, "producer", Enqueue, Event{Type: Unknown, Ref: "f"})
		p.run(id(1700), "f", 1710, 1720, "w1", 1, "done", Done, Event{})
		p.run(id(1701), "f", 1710, 1720, "w1", 1, "done", Done, Event{})
	}},
	{UnknownOnce, "a call with an answer made another job", func(p *past) {
		p.run(id(2), "a", 30, 40, "w1", 1, "done", Done, Event{})
	}},
	{UnknownOnce, "a call that was refused made a job", func(p *past) {
		p.add(1700, "producer", Enqueue, Event{Type: Invoke, Ref: "f"})
		p.add(1701, "producer", Enqueue, Event{Type: Fail, Ref: "f", Class: "full"})
		p.run(id(1700), "f", 1710, 1720, "w1", 1, "done", Done, Event{})
	}},
	{Fenced, "a zombie's outcome is stored", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 4000, "w1", 1, "retry", Retry, Event{Delay: 60, Cause: "lost"})
		p.run(f, "f", 2720, 2730, "w3", 1, "done", Done, Event{Crashes: 1})
	}},
	{Fenced, "a job is done twice", func(p *past) {
		p.run(id(0), "a", 115, 120, "w1", 2, "done", Done, Event{Due: 101})
	}},
	{Fenced, "two runs have one token", func(p *past) {
		p.add(106, "w3", Start, Event{Ref: "a", Job: id(0), Run: (epoch + 105) * 1000, Attempt: 2, MaxAttempts: 3, Due: epoch + 101, Lease: 1000})
	}},
	{Fenced, "a zombie goes on believing in its lease", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 6000, "w1", 1, "done", "", Event{})
		p.run(f, "f", 2720, 2730, "w3", 1, "done", Done, Event{Crashes: 1})
	}},
	{OneHolder, "a lease is taken over before its time", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 2900, "w1", 1, "retry", "", Event{Cause: "lost"})
		p.run(f, "f", 2500, 2510, "w3", 1, "done", Done, Event{Crashes: 1})
	}},
	{OneHolder, "a job whose worker was killed comes back at once", func(p *past) {
		f := p.enqueue(410, "f", Event{})
		p.add(420, "w2", Start, Event{Ref: "f", Job: f, Run: (epoch + 420) * 1000, Attempt: 1, MaxAttempts: 3, Due: epoch + 410, Lease: 1000})
		p.run(f, "f", 800, 810, "w1", 1, "done", Done, Event{Crashes: 1})
	}},
	{OneState, "Check finds something", func(p *past) { p.state.Problems = []string{"pawl:{chaos}:leases: no record"} }},
	{OneState, "a unique key is left", func(p *past) { p.state.Leftover = []string{"pawl:{chaos}:unique:k"} }},
	{OneState, "a job is done and in the queue", func(p *past) { p.state.Live = []string{id(0)} }},
	{OneState, "a job is done and dead", func(p *past) {
		p.state.Dead = append(p.state.Dead, Tombstone{Job: id(0), Ref: "a", Reason: "permanent", Attempt: 1, MaxAttempts: 3, DiedAt: 1})
	}},
	{OneState, "an id had lost its record", func(p *past) { p.state.Stats.Total.Lost = 1 }},
	{OneTombstone, "a job has two", func(p *past) { p.state.Dead = append(p.state.Dead, p.state.Dead[0]) }},
	{OneTombstone, "one is not complete", func(p *past) { p.state.Dead[0].Reason = "" }},
	{OneTombstone, "a redrive left it", func(p *past) {
		p.state.Dead = append(p.state.Dead, Tombstone{Job: id(200), Ref: "b", Reason: "permanent", Attempt: 1, MaxAttempts: 3, DiedAt: epoch + 271})
	}},
	{OneTombstone, "a job died twice without a redrive", func(p *past) {
		p.run(id(1500), "d", 1530, 1540, "w1", 1, "dead", Dead, Event{})
	}},
	{Conservation, "an end is counted twice", func(p *past) { p.state.Stats.Total.Done++ }},
	{Conservation, "a retry is not counted", func(p *past) { p.state.Stats.Total.Retried-- }},
	{Conservation, "an enqueue is counted twice", func(p *past) { p.state.Stats.Total.Enqueued++ }},
	{Conservation, "a redrive is not counted", func(p *past) { p.state.Stats.Total.Redriven-- }},
	{Conservation, "a death is counted twice", func(p *past) { p.state.Stats.Total.Dead++ }},
	{UniqueKey, "two jobs hold a key", func(p *past) { p.enqueue(50, "f", Event{Key: "k"}) }},
	{UniqueKey, "a redriven job takes a key that is held", func(p *past) {
		f := p.enqueue(305, "f", Event{Key: "k"})
		p.run(f, "f", 306, 350, "w1", 1, "done", Done, Event{})
	}},
	{UniqueKey, "a key is taken before its holder has started", func(p *past) {
		f := p.enqueue(5700, "f", Event{Key: "s", Started: true})
		g := p.enqueue(5750, "g", Event{Key: "s", Started: true})
		p.run(f, "f", 5800, 5810, "w1", 1, "done", Done, Event{Due: 5700})
		p.run(g, "g", 5805, 5810, "w1", 1, "done", Done, Event{Due: 5750})
	}},
	{UniqueKey, "a window ends with its job", func(p *past) {
		for at, ref := range map[int64]string{1700: "f", 1800: "g"} {
			job := p.enqueue(at, ref, Event{Key: "w", Window: 300})
			p.run(job, ref, at+1, at+2, "w1", 1, "done", Done, Event{})
		}
	}},
	{UniqueKey, "a key outlives its job", func(p *past) {
		p.add(150, "producer", Enqueue, Event{Type: Invoke, Ref: "f", Key: "k"})
		p.add(151, "producer", Enqueue, Event{Ref: "f", Job: id(0), Duplicate: true})
	}},
	{UniqueKey, "a duplicate is told of the holder of another key", func(p *past) {
		p.add(50, "producer", Enqueue, Event{Type: Invoke, Ref: "f", Key: "other"})
		p.add(51, "producer", Enqueue, Event{Ref: "f", Job: id(0), Duplicate: true})
	}},
	{Idempotent, "a key is done twice within its window", func(p *past) {
		for at, ref := range map[int64]string{1700: "f", 1710: "g"} {
			job := p.enqueue(at, ref, Event{Idem: "i", Keep: 300})
			p.run(job, ref, at+100, at+105, "w1", 1, "done", Done, Event{Due: at})
		}
	}},
	{Idempotent, "a job runs under a key that is in use", func(p *past) {
		f := p.enqueue(1700, "f", Event{Idem: "i", Keep: 1})
		g := p.enqueue(1701, "g", Event{Idem: "i", Keep: 1})
		p.run(f, "f", 1702, 1720, "w1", 1, "done", Done, Event{})
		p.run(g, "g", 1710, 1730, "w1", 1, "done", Done, Event{})
	}},
	{RetryLaw, "more attempts than there are", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 1720, "w1", 4, "done", Done, Event{})
	}},
	{RetryLaw, "a wait that its jitter does not allow", func(p *past) { p.find(id(0), Retry).Delay = 101 }},
	{RetryLaw, "a run before its time", func(p *past) { p.find(id(0), Start).Due += 10 }},
	{RetryLaw, "a first run before its delay is over", func(p *past) { p.find(id(200), Start).Due -= 10 }},
	{RetryLaw, "a retry that is due too soon", func(p *past) { p.events[5].Due -= 10 }},
	{RetryLaw, "a retry that is due too late", func(p *past) { p.events[5].Due, p.events[5].Run = p.events[5].Due+90, p.events[5].Run+90_000 }},
	{RetryLaw, "a failure spends no attempt", func(p *past) { p.events[5].Attempt = 1 }},
	{RetryLaw, "a crash is not counted", func(p *past) {
		for i := range p.events {
			if p.events[i].Job == id(400) {
				p.events[i].Crashes = 0
			}
		}
	}},
	{RetryLaw, "a crash is counted though nobody crashed", func(p *past) {
		f := p.enqueue(30_000, "f", Event{})
		p.add(30_005, "runner", Fault, Event{Class: "lease 1 no reply", Delay: patience})
		p.run(f, "f", 31_020, 31_030, "w1", 1, "done", Done, Event{Crashes: 1, Due: 30_000})
	}},
	{RetryLaw, "a crash is counted after a retry", func(p *past) {
		f := p.enqueue(30_000, "f", Event{})
		p.run(f, "f", 30_005, 30_015, "w1", 1, "retry", Retry, Event{Delay: 60})
		p.run(f, "f", 31_020, 31_030, "w1", 2, "done", Done, Event{Crashes: 1, Due: 30_075})
	}},
	{RetryLaw, "exhausted before its last attempt", func(p *past) { p.state.Dead[0].Reason = "exhausted" }},
	{EffectOnce, "a job runs again after it was done", func(p *past) {
		p.run(id(0), "a", 150, 160, "w3", 2, "done", "", Event{Due: 101})
	}},
	{EffectOnce, "a job comes again for no reason", func(p *past) {
		f := p.enqueue(30_000, "f", Event{})
		p.run(f, "f", 30_010, 30_020, "w1", 1, "done", "", Event{})
		p.run(f, "f", 30_030, 30_040, "w3", 1, "done", Done, Event{})
	}},
	{EffectOnce, "a lease runs out though nothing is wrong", func(p *past) {
		f := p.enqueue(30_000, "f", Event{})
		p.run(f, "f", 30_010, 31_900, "w1", 1, "done", "", Event{Cause: "lost"})
		p.run(f, "f", 31_020, 31_940, "w3", 1, "done", Done, Event{Crashes: 1})
	}},
	{Recovers, "nothing is leased for long after the faults", func(p *past) {
		p.add(1700, "runner", Fault, Event{Class: Healed})
		f := p.enqueue(1690, "f", Event{})
		p.run(f, "f", 6250, 6260, "w1", 1, "done", Done, Event{Due: 1690})
	}},
	{Recovers, "what was enqueued before the faults waits for long after them", func(p *past) {
		f := p.enqueue(2, "f", Event{})
		p.run(f, "f", 9000, 9010, "w1", 1, "done", Done, Event{Due: 2})
		p.add(1700, "runner", Fault, Event{Class: Healed})
	}},
	{Stuck, "a job is still ready", func(p *past) { p.state.Stats.Ready, p.state.Stats.Total.Enqueued = 1, 6 }},
	{Stuck, "a job is still leased", func(p *past) { p.state.Stats.Running, p.state.Stats.Total.Enqueued = 1, 6 }},
	{HonestErrors, "a job starts after its Cancel", func(p *past) {
		p.run(id(1600), "e", 1700, 1710, "w1", 1, "done", Done, Event{})
	}},
	{HonestErrors, "a redrive that was answered moved nothing", func(p *past) {
		p.add(1700, "producer", Redrive, Event{Type: Invoke, Ref: "r2", Job: id(1500)})
		p.add(1701, "producer", Redrive, Event{Ref: "r2", Job: id(1500)})
	}},
	{HonestErrors, "a job is leased in a pause", func(p *past) {
		p.pause(1700, "p1", 300)
		p.run(p.enqueue(1800, "f", Event{}), "f", 1810, 1820, "w1", 1, "done", Done, Event{})
		p.find(id(1800), Start).Queue = "q"
	}},
	{HonestErrors, "a worker does not say how a run ended", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 1720, "w1", 1, "done", "", Event{})
		p.state.Stats.Total.Done++
	}},
	{HonestErrors, "a worker that drained left a run", func(p *past) {
		f := p.enqueue(9700, "f", Event{})
		p.run(f, "f", 9710, 9760, "w1", 1, "retry", "", Event{Cause: "shutdown"})
		p.add(9720, "runner", Fault, Event{Class: "term", Ref: "w1"})
		p.run(f, "f", 10720, 10730, "w3", 1, "done", Done, Event{Crashes: 1, Due: 9700})
	}},
	{Fenced, "a run is started long after its lease", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 4300, "w1", 1, "done", Done, Event{})
		p.find(f, Start).At += 2520
	}},
	{EffectOnce, "a job that may run once runs twice", func(p *past) {
		f := p.enqueue(410, "f", Event{Class: "once"})
		p.add(420, "w2", Start, Event{Ref: "f", Job: f, Run: (epoch + 420) * 1000, Attempt: 1, MaxAttempts: 1, Due: epoch + 410, Lease: 1000})
		p.run(f, "f", 1430, 1440, "w1", 1, "done", Done, Event{Crashes: 1, Due: 410})
	}},
	{RetryLaw, "a job is done that was to be discarded", func(p *past) {
		p.run(p.enqueue(1700, "f", Event{}), "f", 1710, 1720, "w1", 1, "discard", Done, Event{})
	}},
	{RetryLaw, "a failure is released, and spends no attempt", func(p *past) {
		f := p.enqueue(30_000, "f", Event{})
		p.run(f, "f", 30_005, 30_015, "w1", 1, "retry", Release, Event{})
	}},
	{HonestErrors, "a run is told that it lost, and ended the job", func(p *past) {
		f := p.enqueue(1700, "f", Event{})
		p.run(f, "f", 1710, 1720, "w1", 1, "done", "", Event{})
		p.add(1730, "w1", Lost, Event{Job: f, Run: (epoch + 1710) * 1000})
		p.state.Stats.Total.Done++
	}},
}

func (p *past) pause(at int64, ref string, ms int64) {
	p.add(at, "producer", Pause, Event{Type: Invoke, Ref: ref, Queue: "q", Delay: ms})
	p.add(at+1, "producer", Pause, Event{Ref: ref})
}

func (p *past) find(job string, op Op) *Event {
	for i := range p.events {
		if e := &p.events[i]; e.Job == job && e.Op == op {
			return e
		}
	}
	return nil
}

func TestEachPlantedViolationIsCaughtByName(t *testing.T) {
	t.Parallel()
	ways := map[string]int{}
	for _, c := range planted {
		ways[c.invariant]++
		t.Run(c.invariant+": "+c.name, func(t *testing.T) {
			t.Parallel()
			p := clean()
			c.plant(p)
			var names []string
			for _, v := range Check(p.events, p.state) {
				names = append(names, v.Invariant)
				require.True(t, strings.HasPrefix(v.String(), v.Invariant))
			}
			require.Contains(t, names, c.invariant)
		})
	}
	for _, invariant := range []string{NoLoss, NoPhantom, UnknownOnce, Fenced, OneHolder, OneState, OneTombstone,
		Conservation, UniqueKey, Idempotent, RetryLaw, EffectOnce, Recovers, Stuck, HonestErrors} {
		require.GreaterOrEqual(t, ways[invariant], 2, invariant)
	}
}
