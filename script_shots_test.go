package pawl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// rec is a record of a job of 20 bytes, with some fields set.
func rec(change ...func(*record.Record)) string {
	r := &record.Record{Kind: "k", Payload: []byte("0123456789012345")}
	for _, c := range change {
		c(r)
	}
	return string(r.Append(nil))
}

func long(r *record.Record) { r.LongHead = true }

func priority(p int) func(*record.Record) {
	return func(r *record.Record) { r.Priority, r.LongHead = p, true }
}

// suspect makes a record whose next crash is the last.
func suspect(r *record.Record) { r.Crashes, r.MaxCrashes = 2, 3 }

func newLow() string { return strconv.FormatUint(jobid.NewLow(), 10) }

// hold is a lease that somebody has, or had.
type hold struct{ id, token string }

// newJob is one item of an enqueue: its record and how it waits.
type newJob struct{ record, how string }

func (r *rig) enqueueShot(uniques []string, jobs ...newJob) shot {
	k := &r.k
	s := shot{scriptEnqueue, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey}, []any{len(jobs)}}
	for _, u := range uniques {
		s.keys = append(s.keys, k.unique(u))
	}
	for _, j := range jobs {
		s.args = append(s.args, newLow(), j.record, j.how)
	}
	return s
}

// enqueue adds jobs and returns their ids; of duplicates, the holders'.
func (r *rig) enqueue(uniques []string, jobs ...newJob) (ids []string, marks string) {
	r.t.Helper()
	s := r.enqueueShot(uniques, jobs...)
	parts := strings.Split(r.fire(s), " ")
	us, err := strconv.ParseInt(parts[0], 10, 64)
	require.NoError(r.t, err)
	holders := parts[2:]
	for i, mark := range parts[1] {
		if mark != '.' {
			ids, holders = append(ids, holders[0]), holders[1:]
			continue
		}
		ids = append(ids, fmt.Sprintf("%d-%s", us, s.args[1+3*i]))
		us++
	}
	return ids, parts[1]
}

// fresh adds n plain jobs.
func (r *rig) fresh(n int) []string {
	r.t.Helper()
	ids, _ := r.enqueue(nil, slices.Repeat([]newJob{{rec(), ""}}, n)...)
	return ids
}

// ask is what a lease call asks for; zeros are what a worker would send.
type ask struct {
	n            int
	nonce        string
	noSuspect    bool
	noExpired    bool
	visibilityMs int64
}

func (r *rig) leaseShot(a ask) shot {
	if a.nonce == "" {
		a.nonce = "nonce"
	}
	if a.visibilityMs == 0 {
		a.visibilityMs = 600_000
	}
	k := &r.k
	return shot{scriptLease, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey},
		[]any{a.n, a.visibilityMs, a.nonce, 3, !a.noSuspect, !a.noExpired, newLow()}}
}

// answer is that of a lease call.
type answer struct {
	now, next int64
	token     string
	jobs      []leasedJob
}

type leasedJob struct{ id, record, crashes, flags string }

func (a answer) ids() (ids []string) {
	for _, j := range a.jobs {
		ids = append(ids, j.id)
	}
	return ids
}

func (r *rig) parse(reply any) (a answer) {
	r.t.Helper()
	parts, ok := reply.([]any)
	require.True(r.t, ok && len(parts)%4 == 3, "a lease answered %v", reply)
	text := func(i int) string { return fmt.Sprint(parts[i]) }
	var err error
	a.now, err = strconv.ParseInt(text(0), 10, 64)
	require.NoError(r.t, err)
	a.next, err = strconv.ParseInt(text(1), 10, 64)
	require.NoError(r.t, err)
	a.token = text(2)
	for i := 3; i < len(parts); i += 4 {
		a.jobs = append(a.jobs, leasedJob{text(i), text(i + 1), text(i + 2), text(i + 3)})
	}
	return a
}

func (r *rig) lease(a ask) answer {
	r.t.Helper()
	reply, err := r.send(newLane(&r.k), 1, r.leaseShot(a))
	require.NoError(r.t, err)
	return r.parse(reply)
}

func (r *rig) settleShot(counter string, unique string, holds ...hold) shot {
	k := &r.k
	s := shot{scriptSettle, []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, laneKey, k.due, k.wake}, nil}
	index := r.withUnique(&s, unique)
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, counter, index)
	}
	return s
}

func (r *rig) withUnique(s *shot, unique string) int {
	if unique == "" {
		return 0
	}
	s.keys = append(s.keys, r.k.unique(unique))
	return 1
}

func (r *rig) retryShot(counter string, delay time.Duration, body string, holds ...hold) shot {
	return r.retryUnder("", counter, delay, body, holds...)
}

// retryUnder is of jobs that hold a unique key.
func (r *rig) retryUnder(unique, counter string, delay time.Duration, body string, holds ...hold) shot {
	return r.retryLeaving("", unique, counter, delay, body, holds...)
}

// retryLeaving is of jobs that leave something, if they are over.
func (r *rig) retryLeaving(left, unique, counter string, delay time.Duration, body string, holds ...hold) shot {
	k := &r.k
	s := shot{scriptRetry, []string{k.jobs, k.held, k.due, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey, k.done, k.doneAt}, []any{k.ended()}}
	index := r.withUnique(&s, unique)
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, body, delay.Milliseconds(), counter, index, left)
	}
	return s
}

func (r *rig) buryShot(unique string, holds ...hold) shot {
	k := &r.k
	s := shot{scriptBury, []string{k.jobs, k.held, k.leases, k.runs, k.dead, k.index, k.meta, k.minutes, laneKey, k.due, k.wake}, []any{k.ended()}}
	index := r.withUnique(&s, unique)
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, rec(long), "failed!", index)
	}
	return s
}

func (r *rig) extendShot(holds ...hold) shot {
	s := shot{scriptExtend, []string{r.k.leases, r.k.runs, laneKey}, nil}
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, 900_000)
	}
	return s
}

func (r *rig) releaseShot(holds ...hold) shot { return r.giveBackShot(false, holds) }

// unrunShot gives jobs back whose handlers were not called.
func (r *rig) unrunShot(holds ...hold) shot { return r.giveBackShot(true, holds) }

func (r *rig) giveBackShot(unrun bool, holds []hold) shot {
	s := shot{scriptRelease, []string{r.k.leases, r.k.runs, r.k.meta, r.k.minutes, r.k.wake, laneKey}, nil}
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, unrun)
	}
	return s
}

func (r *rig) cancelShot(unique, id string) shot { return r.cancelLeaving("", unique, id) }

// cancelLeaving is of a job that leaves something.
func (r *rig) cancelLeaving(left, unique, id string) shot {
	k := &r.k
	s := shot{scriptCancel, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.index, k.meta, k.minutes, laneKey, k.wake, k.done, k.doneAt}, []any{id}}
	s.args = append(s.args, r.withUnique(&s, unique), k.ended(), left)
	return s
}

func (r *rig) grave(id string) string {
	r.t.Helper()
	return fmt.Sprint(r.do("HGET", r.k.index, id))
}

// redriveShot is of dead jobs; how is their unique key's "<d|s> <window end>".
func (r *rig) redriveShot(unique, how, body string, ids ...string) shot {
	k := &r.k
	s := shot{scriptRedrive, []string{k.jobs, k.held, k.due, k.prio, k.runs, k.dead, k.index, k.meta, k.minutes, k.wake, laneKey}, []any{"go"}}
	if index := r.withUnique(&s, unique); index > 0 {
		how = "1 " + how
	}
	for _, id := range ids {
		s.args = append(s.args, id, r.grave(id), body, how)
	}
	return s
}

func (r *rig) deleteShot(ids ...string) shot {
	s := shot{scriptDelete, []string{r.k.dead, r.k.index, r.k.meta, r.k.minutes, laneKey, r.k.jobs, r.k.held}, []any{"purged", 0}}
	for _, id := range ids {
		s.args = append(s.args, id, "")
	}
	return s
}

// progressShot notes that runs are halfway.
func (r *rig) progressShot(holds ...hold) shot {
	s := shot{scriptProgress, []string{r.k.leases, r.k.runs, laneKey}, nil}
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, " 50 half")
	}
	return s
}

// holderVerbs are the ways in which a holder ends or renews a lease, or tells of it.
var holderVerbs = map[string]func(*rig, ...hold) shot{
	"settle":  func(r *rig, h ...hold) shot { return r.settleShot("done", "", h...) },
	"finish":  func(r *rig, h ...hold) shot { return r.finishShot("done", "", h...) },
	"retry":   func(r *rig, h ...hold) shot { return r.retryShot("retried", time.Hour, rec(long), h...) },
	"snooze":  func(r *rig, h ...hold) shot { return r.retryShot("snoozed", time.Hour, rec(long), h...) },
	"bury":    func(r *rig, h ...hold) shot { return r.buryShot("", h...) },
	"release": func(r *rig, h ...hold) shot { return r.releaseShot(h...) },
	"extend":  func(r *rig, h ...hold) shot { return r.extendShot(h...) },

	"progress": func(r *rig, h ...hold) shot { return r.progressShot(h...) },
}

// ended is the change of a record that says how its job ended.
func ended(state string) func(*record.Record) {
	return func(r *record.Record) {
		r.Retain, r.End = time.Minute, &record.End{State: state, At: 1750000000000, Result: []byte("7"), HasResult: true}
	}
}

// finishShot is of jobs that are kept for a minute.
func (r *rig) finishShot(counter, unique string, holds ...hold) shot {
	return r.finishThen(60_000, counter, unique, nil, nil, holds...)
}

// finishThen is of jobs each of which others follow, under keys that come after its own.
func (r *rig) finishThen(keepMs int, counter, unique string, uniques []string, then []newJob, holds ...hold) shot {
	k := &r.k
	s := shot{scriptFinish, []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, laneKey, k.due, k.wake, k.done, k.doneAt, k.prio}, []any{k.ended()}}
	index := r.withUnique(&s, unique)
	for _, u := range uniques {
		s.keys = append(s.keys, k.unique(u))
	}
	for _, h := range holds {
		s.args = append(s.args, h.id, h.token, counter, index, rec(ended(counter)), keepMs, len(then))
		for _, j := range then {
			s.args = append(s.args, newLow(), j.record, j.how)
		}
	}
	return s
}
