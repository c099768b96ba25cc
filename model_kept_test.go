//go:build !race

package pawl

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// What the model says of jobs that are over and kept.

type modelKept struct {
	id, record string
	till       int64 // ms
}

// keptOrder is those that are kept, in the order in which they are let go.
func (m *modelQueue) keptOrder() []modelKept {
	return slices.SortedFunc(maps.Values(m.kept), func(a, b modelKept) int {
		return cmp.Or(cmp.Compare(a.till, b.till), cmp.Compare(a.id, b.id))
	})
}

// keep adds some, and lets at most so many others go.
func (m *modelQueue) keep(most int, added ...modelKept) (gone int) {
	all := m.keptOrder()
	for i, k := range all {
		if i < most && (k.till <= m.ms() || i < len(all)+len(added)-m.keptMost) {
			delete(m.kept, k.id)
			gone++
		}
	}
	for _, k := range added {
		m.kept[k.id] = k
	}
	return gone
}

// shows reports whether a job is over, and can be seen.
func (m *modelQueue) shows(id string) bool {
	k, kept := m.kept[id]
	return kept && k.till > m.ms()
}

// keptNow is the ids and records that a list shows.
func (m *modelQueue) keptNow(wanted bool) []string {
	list := []string{}
	for _, k := range m.keptOrder() {
		if wanted && k.till > m.ms() {
			list = append(list, k.id, k.record)
		}
	}
	return list
}

// modelWithField is the record with a field behind its kind.
func modelWithField(text string, field []byte) string {
	h := modelHeadOf(text)
	if len(text) < 3 || text[0] != 1 || text[1]&32 != 0 && !h.long {
		return text
	}
	at := 2
	if h.long {
		at = 14
	}
	size, n := binary.Uvarint([]byte(text[at:]))
	at += n + int(size)
	if n <= 0 || at >= len(text) {
		return text
	}
	return text[:at] + string(field) + text[at:]
}

func (x *modelMachine) trim() error {
	gone := x.m.keep(250)
	c := &call{script: x.rig.scripts["trim"], keys: []string{x.q.keys.done, x.q.keys.doneAt}}
	attempt(context.Background(), x.rig.rdb, c)
	if got, want := fmt.Sprint(c.reply), fmt.Sprint(gone, " 0"); c.err == nil && got != want {
		return fmt.Errorf("trim answered %s, want %s", got, want)
	}
	return c.err
}

// someKept is a job that is kept, or else any; nil if there is none.
func (x *modelMachine) someKept() *modelJob {
	if all := x.m.keptOrder(); len(all) > 0 && x.roll(4, "any job") > 0 {
		return x.m.jobs[all[x.roll(len(all), "kept job")].id]
	}
	return x.job("job", modelGone)
}

func (x *modelMachine) forgetKept() error {
	var args []any
	want := ""
	for range 1 + x.roll(2, "jobs") {
		id, mark := modelID(x.someKept()), "m"
		if _, kept := x.m.kept[id]; kept {
			mark = "k"
		}
		delete(x.m.kept, id)
		args, want = append(args, id), want+mark
	}
	x.say("%v %s", args, want)
	return x.ask(x.lane(x.lanes, "forget"), "forget", want, []string{x.q.keys.done, x.q.keys.doneAt, laneKey}, args...)
}

// find compares what is said of a job, which may be over.
func (x *modelMachine) find() error {
	j := x.someKept()
	if j == nil {
		return nil
	}
	x.say("%s", j.id)
	want, body := string(x.m.stateOf(j)), j.record
	k, kept := x.m.kept[j.id]
	switch {
	case j.live():
	case j.place == modelDead:
		want = "dead"
	case kept && k.till > x.m.ms():
		want, body = "done", k.record
	default:
		want, body = "missing", ""
	}
	q := &x.q.keys
	c := &call{script: x.rig.scripts["inspect"], keys: q.living(q.dead, q.index, q.done, q.doneAt), args: []any{j.id}}
	attempt(context.Background(), x.rig.rdb, c)
	parts, _ := c.reply.([]any)
	if c.err != nil || len(parts) != 5 || parts[0] != want || parts[1] != body {
		return fmt.Errorf("inspect answered %q, %w, want %s %q", parts, c.err, want, body)
	}
	if want == "done" && x.viaQueue() {
		return x.get(j.id, k)
	}
	return nil
}

// get has Queue say how a job ended, and when.
func (x *modelMachine) get(text string, k modelKept) error {
	id, _ := jobid.FromText(text)
	info, err := x.q.Get(context.Background(), id)
	if err != nil {
		return err
	}
	want := StateDone
	if rec, err := record.Decode([]byte(k.record)); err == nil && (rec.End.State == "cancelled" || rec.End.State == "discarded") {
		want = State(rec.End.State)
	}
	if info.State != want || info.DoneAt.IsZero() {
		return fmt.Errorf("Get says %v at %v, want %v", info.State, info.DoneAt, want)
	}
	return nil
}

// followUps draws what follows a job that was done, and adds their keys to its call.
func (x *modelMachine) followUps(r *modelRef, keys []string, fixed int) []string {
	if len(x.m.state()) > 150 {
		return keys
	}
	for range max(0, x.roll(5, "follow-ups")-1) {
		x.nonce++
		it, _ := x.item(1<<63 + uint64(1000+x.nonce))
		unique := 0
		if it.key != "" {
			keys = append(keys, x.q.keys.unique(it.key))
			unique = len(keys) - fixed
		}
		r.then = append(r.then, it)
		r.words = append(r.words, fmt.Sprint(it.low), it.record, it.how(unique))
	}
	return keys
}
