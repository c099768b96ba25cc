//go:build !race

package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// What clients do: enqueue, cancel, redrive, delete.

// modelForeign are bytes that no build of this package wrote: none, too few,
// another version, and an unknown priority.
var modelForeign = []string{"", "\x01", "\x02\x3f" + strings.Repeat("z", 20), "\x01\x0f\x00", "\x01\x20short"}

const modelKind = "k"

// item draws a job: its wait, priority, key and policies.
func (x *modelMachine) item(low uint64) (modelItem, []Option) {
	it := modelItem{low: low}
	r := record.Record{Kind: modelKind, Payload: []byte{byte('a' + x.roll(26, "payload"))}}
	var options []Option
	shape := x.roll(9, "shape")
	if shape == 3 || shape == 6 {
		it.when, it.ms = 'd', int64(modelPickOne(x, "delay", 1, 500, 3000, 20000))
		options = append(options, Delay(time.Duration(it.ms)*time.Millisecond))
	}
	if shape == 4 {
		it.when, it.ms = 'a', x.m.ms()+int64(modelPickOne(x, "at", -5000, 0, 1, 2000))
		options = append(options, At(time.UnixMilli(it.ms)))
	}
	if shape == 5 || shape == 6 || shape == 7 {
		it.priority = 1 + x.roll(9, "priority")
		options = append(options, Priority(it.priority))
		if it.when == 0 {
			it.when = 'd'
		}
	}
	r.Priority, r.LongHead = it.priority, it.when != 0
	if r.MaxCrashes = x.roll(4, "max crashes"); r.MaxCrashes > 0 {
		options = append(options, MaxCrashes(r.MaxCrashes))
	}
	if x.roll(4, "visibility") == 0 {
		r.Visibility = 3 * time.Second
		options = append(options, VisibilityTimeout(r.Visibility))
	}
	if x.roll(3, "unique") == 0 {
		u := Unique{Key: fmt.Sprint("key", x.roll(x.keys, "key"))}
		it.key, it.mode = u.Key, 'd'
		if x.roll(3, "until started") == 0 {
			u.Until, it.mode = UntilStarted, 's'
		}
		if x.roll(3, "window") == 0 {
			u.For, it.window = 4*time.Second, 4000
		}
		switch x.roll(4, "on duplicate") {
		case 0:
			u.OnDuplicate, it.change = ReplaceWaiting, 'r'
		case 1, 2:
			if u.Until == UntilDone {
				u.OnDuplicate, it.change = RunLatestAfter, 'l'
			}
		}
		r.LongHead = r.LongHead || it.change != 0
		options = append(options, u)
		r.Unique = &record.Unique{Key: u.Key, Until: int(u.Until), For: u.For, OnDuplicate: int(u.OnDuplicate)}
	}
	// Those that may replace each other have one idempotency key, or none, as the
	// docstring of ReplaceWaiting asks.
	idempotent := it.key == "key0"
	if it.key == "" {
		idempotent = x.roll(2, "idempotent") == 0
	}
	if idempotent {
		i := Idempotency{Key: fmt.Sprint("key", x.roll(2, "key")), Window: 4 * time.Second}
		if it.key != "" {
			i.Key = "key0"
		}
		it.idem, it.idemWindow = i.Key, 4000
		options = append(options, i)
		r.Idempotency = &record.Idempotency{Key: i.Key, Window: i.Window}
	}
	if x.roll(3, "retain") == 0 {
		it.retain, r.Retain = 4000, 4*time.Second
		options = append(options, Retain(r.Retain))
	}
	it.record = string(r.Append(nil))
	return it, options
}

func (x *modelMachine) enqueue() error {
	if living := len(x.m.state()); living > 150 {
		return nil // the state is read after every step
	}
	if x.viaQueue() {
		return x.enqueueOne()
	}
	l := x.lane(x.lanes, modelPickOne(x, "lane", "enqueue0", "enqueue1"))
	k := &x.q.keys
	keys := []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey}
	var items []modelItem
	args := []any{1 + x.roll(5, "jobs")}
	for i := range args[0].(int) {
		it, _ := x.item(1<<63 + uint64(i))
		if x.roll(25, "foreign") == 0 {
			it.record, it.key, it.idem, it.change = modelPickOne(x, "foreign", modelForeign...), "", "", 0
			it.retain = 0
		}
		unique := 0
		if it.key != "" {
			keys = append(keys, k.unique(it.key))
			unique = len(keys) - 10
		}
		items = append(items, it)
		args = append(args, fmt.Sprint(it.low), it.record, it.how(unique))
	}
	want := x.m.enqueue(items)
	x.say("%s", want)
	return x.ask(l, "enqueue", want, keys, args...)
}

// how is what a script is told of how an item waits.
func (it *modelItem) how(unique int) string {
	if it.when == 0 && unique == 0 {
		return ""
	}
	how := fmt.Sprintf("%c %d %d %d %c %d", max(it.when, 'a'), it.ms, it.priority, unique, max(it.mode, 'd'), it.window)
	if it.when == 0 {
		how = "d" + how[1:]
	}
	if it.change != 0 {
		how += " " + string(it.change)
	}
	return how
}

// enqueueOne goes through Queue, which makes the low half of the id itself.
func (x *modelMachine) enqueueOne() error {
	it, options := x.item(0)
	r, _ := record.Decode([]byte(it.record))
	got, err := x.q.EnqueueRaw(context.Background(), modelKind, r.Payload, options...)
	if err != nil {
		return err
	}
	text, _ := jobid.Text(got.ID)
	_, low, _ := strings.Cut(text, "-")
	_, _ = fmt.Sscan(low, &it.low)
	want := x.m.enqueue([]modelItem{it})
	x.say("%s", want)
	first, mark, _ := strings.Cut(want, " ")
	wantText, replaced := strings.CutPrefix(mark, "r ")
	wantText, duplicate := strings.CutPrefix(wantText, "d ")
	duplicate = duplicate || replaced
	if !duplicate {
		wantText = first + "-" + low
	}
	if text != wantText || got.Duplicate != duplicate || got.Replaced != replaced {
		return fmt.Errorf("Enqueue: %s, duplicate %t, replaced %t, want %s", text, got.Duplicate, got.Replaced, want)
	}
	return nil
}

// name is a job's id, or one that no job has.
func modelID(j *modelJob) string {
	if j == nil {
		return "1-9223372036854775808"
	}
	return j.id
}

func (x *modelMachine) cancel() error {
	j := x.job("job", modelFresh, modelDue, modelPrio, modelLeased, modelParked)
	want := x.m.cancel(modelID(j))
	x.say("%s %s", modelID(j), want)
	own := j == nil || j.retain == 0 || x.rig.keptMost == 10000 // the script of Queue keeps as many
	if own && x.viaQueue() {
		id, _ := jobid.FromText(modelID(j))
		err := x.q.Cancel(context.Background(), id)
		over := want == "missing" && x.m.shows(modelID(j))
		if errors.Is(err, ErrState) != (want == "dead" || over) || errors.Is(err, ErrNotFound) != (want == "missing" && !over) {
			return fmt.Errorf("Cancel: %w, want %s, over %v", err, want, over)
		}
		return nil
	}
	k := &x.q.keys
	keys := []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.index, k.meta, k.minutes, laneKey, k.wake, k.done, k.doneAt}
	unique, left := 0, ""
	if j != nil && j.key != "" {
		keys, unique = append(keys, k.unique(j.key)), 1
	}
	if j != nil && j.idem != "" {
		keys = append(keys, k.idem(j.idem))
	}
	if j != nil && j.retain > 0 {
		left = fmt.Sprintf("%d %s", j.retain, (&record.End{State: "cancelled", At: x.m.ms()}).Field())
	}
	return x.ask(x.lane(x.lanes, "cancel"), "cancel", want, keys, modelID(j), unique, k.ended(), left)
}

// revived is what a redrive makes of a dead job's record.
func (x *modelMachine) revived(j *modelJob) string {
	rec, err := record.Decode([]byte(j.record))
	if err != nil || rec.Dead == nil {
		return j.record
	}
	if rec.Dead.Reason == string(ReasonCorrupt) {
		return string(rec.Payload)
	}
	return string(revived(rec, time.UnixMilli(x.m.ms())).Append(nil))
}

func (x *modelMachine) redrive() error {
	k := &x.q.keys
	keys := []string{k.jobs, k.held, k.due, k.prio, k.runs, k.dead, k.index, k.meta, k.minutes, k.wake, laneKey}
	var words []string
	args := []any{"go"}
	moved := 0
	for range 1 + x.roll(3, "jobs") {
		j := x.job("job", modelDead)
		if j == nil || j.record == "" {
			continue
		}
		grave, rec, how := j.grave, x.revived(j), ""
		if grave == "" || x.roll(8, "grave") == 0 {
			grave = "7-7"
		}
		if j.key != "" {
			keys = append(keys, k.unique(j.key))
			how = fmt.Sprintf("%d %c %d", len(keys)-11, j.mode, j.windowEnd())
		}
		words = append(words, x.m.redrive(j.id, grave, rec))
		if words[len(words)-1] == "ok" {
			moved++
		}
		args = append(args, j.id, grave, rec, how)
		x.say("%s %s", j.id, grave)
	}
	if len(args) == 1 {
		return nil
	}
	x.m.push(moved)
	x.say("%v", words)
	if len(words) == 1 && args[2] != "7-7" && x.viaQueue() {
		return x.redriveOne(args[1].(string), words[0])
	}
	return x.ask(x.lane(x.lanes, "redrive"), "redrive", strings.Join(words, " "), keys, args...)
}

func (x *modelMachine) redriveOne(text, want string) error {
	id, _ := jobid.FromText(text)
	report, err := x.q.Dead().Redrive(context.Background(), id)
	got := "ok"
	switch {
	case errors.Is(err, ErrNotFound):
		got = "missing"
	case err != nil:
		return err
	case len(report.Refused) > 0:
		got, _ = jobid.Text(report.Refused[0].Holder)
	}
	if got != want || (report.Moved == 1) != (want == "ok") {
		return fmt.Errorf("Redrive: %s, want %s", got, want)
	}
	return nil
}
