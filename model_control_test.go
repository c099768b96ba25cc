//go:build !race

package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// What operators do: delete, purge, reschedule, pause, list.

// delete answers for a dead job that was seen at a grave, or at whichever if that
// is empty, and that must be dead for so many ms.
func (m *modelQueue) delete(id, grave, counter string, age int64) string {
	j := m.jobs[id]
	if j == nil || j.place != modelDead || grave != "" && grave != j.grave {
		return "m"
	}
	if ms, _, _ := strings.Cut(j.grave, "-"); modelNumber(ms) > m.ms()-age {
		return "m"
	}
	j.place = modelGone
	m.count(counter, 1)
	return "k"
}

func (x *modelMachine) delete() error {
	counter, age := modelPickOne(x, "counter", "purged", "dropped"), int64(modelPickOne(x, "age", 0, 0, 3000))
	args := []any{counter, age}
	var ids []ID
	want, plain := "", counter == "purged" && age == 0
	for range 1 + x.roll(3, "jobs") {
		j := x.job("job", modelDead)
		text, grave := modelID(j), ""
		if j != nil && x.roll(3, "seen") > 0 {
			grave, plain = modelPickOne(x, "grave", j.grave, j.grave, "7-7"), false
		}
		id, _ := jobid.FromText(text)
		args, ids = append(args, text, grave), append(ids, id)
		want += x.m.delete(text, grave, counter, age)
	}
	x.say("%v %s", args, want)
	if plain && x.viaQueue() {
		n, err := x.q.Dead().Delete(context.Background(), ids...)
		if errors.Is(err, ErrNotFound) && len(x.m.jobs) == 0 {
			err = nil
		}
		if err == nil && n != strings.Count(want, "k") {
			err = fmt.Errorf("Delete: %d, want %s", n, want)
		}
		return err
	}
	k := &x.q.keys
	return x.ask(x.lane(x.lanes, "delete"), "delete", want, []string{k.dead, k.index, k.meta, k.minutes, laneKey, k.jobs, k.held}, args...)
}

// state is what a job's state is called, or "" for one that is not there.
func (m *modelQueue) stateOf(j *modelJob) State {
	switch {
	case !j.live():
		return ""
	case j.place == modelLeased && j.score > m.ms():
		return StateRunning
	case j.place == modelDue && j.score > m.ms():
		return StateDelayed
	case j.place == modelParked:
		return StateParked
	}
	return StateReady
}

func (x *modelMachine) purge() error {
	s := modelPickOne(x, "state", StateReady, StateDelayed, StateParked)
	k := &x.q.keys
	keys := k.living(k.meta, k.minutes, laneKey, k.wake)
	args, want := []any{string(s)}, ""
	var gone []*modelJob
	for range 1 + x.roll(3, "jobs") {
		j := x.job("job", modelFresh, modelDue, modelPrio, modelLeased, modelParked)
		for _, id := range x.m.order {
			if h := x.m.jobs[id]; h.key != "" && x.m.uniques[h.key].holder == id && x.m.uniques[h.key].next != "" && x.m.stateOf(h) == s {
				j = h // behind which another waits
			}
		}
		var places string
		keys, places = x.places(keys, 10, j)
		args = append(args, modelID(j), places)
		if x.m.stateOf(j) != s || slices.Contains(gone, j) {
			want += "m"
			continue
		}
		gone = append(gone, j)
		want += "k"
	}
	for _, j := range gone { // all at once: what that makes ready was not
		x.m.end(j, modelGone)
		x.m.count("purged", 1)
	}
	x.say("%v %s", args, want)
	return x.ask(x.lane(x.lanes, "purge"), "purge", want, keys, args...)
}

// reschedule moves a job that waits; long is what becomes of a streamed record.
func (m *modelQueue) reschedule(j *modelJob, at int64, long string) string {
	state := m.stateOf(j)
	switch {
	case j != nil && j.place == modelDead:
		return "dead"
	case state == "":
		return "missing"
	case state == StateRunning:
		return "running"
	case state == StateParked:
		return "parked"
	case j.flags == "c":
		return "cancelled"
	}
	at = max(at, m.ms())
	if at == m.ms() && state != StateDelayed {
		return "ok"
	}
	if j.streamed {
		j.record, j.streamed = long, false
	}
	if h := modelHeadOf(j.record); j.place == modelLeased && h.long && !j.unrun {
		b := []byte(j.record)
		crashes := max(j.crashes, h.crashes)
		if j.score != 0 {
			crashes++
		}
		b[1], b[2] = b[1]|16, byte(min(crashes, 255))
		j.record = string(b)
	}
	j.place, j.score, j.record = modelDue, at, modelWithDue(j.record, at)
	j.flags = ""
	j.unlease()
	if m.dueSoon(at) {
		m.push(1)
	}
	return "ok"
}

func (x *modelMachine) reschedule() error {
	j := x.job("job", modelFresh, modelDue, modelPrio, modelLeased, modelParked)
	for _, id := range x.m.order {
		if f := x.m.jobs[id]; (f.flags == "c" || f.place == modelParked) && x.roll(2, "a cancelled or parked one") == 0 {
			j = f
		}
	}
	at := modelPickOne(x, "at", 0, 0, x.m.ms()-1000, x.m.ms(), x.m.ms()+1, x.m.ms()+2000, x.m.ms()+20000)
	long := "\x01"
	if j != nil {
		long = j.record
		if rec, err := record.Decode([]byte(long)); err == nil {
			rec.LongHead = true
			long = string(rec.Append(nil))
		}
	}
	want := x.m.reschedule(j, at, long)
	x.say("%s to %d: %s", modelID(j), at, want)
	if x.viaQueue() {
		id, _ := jobid.FromText(modelID(j))
		call := func() error { return x.q.RunNow(context.Background(), id) }
		if at > 0 {
			call = func() error { return x.q.Reschedule(context.Background(), id, time.UnixMilli(at)) }
		}
		err := call()
		is := map[string]error{"missing": ErrNotFound, "dead": ErrState, "running": ErrState, "parked": ErrState, "cancelled": ErrState}[want]
		if want == "missing" && x.m.shows(modelID(j)) {
			is = ErrState
		}
		if (err != nil) != (is != nil) || err != nil && !errors.Is(err, is) {
			return fmt.Errorf("reschedule: %w, want %s", err, want)
		}
		return nil
	}
	k := &x.q.keys
	return x.ask(x.lane(x.lanes, "reschedule"), "reschedule", want, k.living(k.index, k.wake, laneKey), modelID(j), at, long)
}

func (x *modelMachine) pause() error {
	ms := int64(modelPickOne(x, "pause", 0, 0, 1, 700, 5000, -1))
	want := "ok"
	switch {
	case len(x.m.jobs) == 0 && x.m.minute == 0 && x.m.cursor == "":
		want = "missing"
	case ms == 0:
		x.m.paused = 0
		x.m.push(2)
	default:
		x.m.paused = x.m.ms() + ms
		if ms < 0 {
			x.m.paused = pausedForever
		}
		x.m.push(1)
	}
	x.say("%d ms: %s", ms, want)
	k := &x.q.keys
	return x.ask(x.lane(x.lanes, "pause"), "pause", want, []string{k.meta, k.wake, laneKey, k.jobs, k.held, k.dead, k.workers, k.schedules}, ms)
}

// list walks each source of waiting jobs in small pages and compares the order.
func (x *modelMachine) list() error {
	sources := map[string][]*modelJob{}
	for _, id := range x.m.order {
		j := x.m.jobs[id]
		late := j.score > x.m.ms()
		switch {
		case j.place == modelFresh:
			sources["fresh"] = append(sources["fresh"], j)
		case j.place == modelParked:
			sources["parked"] = append(sources["parked"], j)
		case j.place == modelPrio:
			sources["prio"] = append(sources["prio"], j)
		case j.place == modelDue && late:
			sources["delayed"] = append(sources["delayed"], j)
		case j.place == modelDue:
			sources["due"] = append(sources["due"], j)
		case j.place == modelLeased && !late:
			sources["lapsed"] = append(sources["lapsed"], j)
		}
	}
	k := &x.q.keys
	for _, source := range []string{"lapsed", "prio", "due", "fresh", "delayed", "parked", "done"} {
		want, got := x.m.keptNow(source == "done"), []string{}
		if source != "fresh" {
			slices.SortFunc(sources[source], modelByScore)
		}
		for _, j := range sources[source] {
			want = append(want, j.id, j.record)
		}
		for score, id := "", ""; ; {
			c := &call{script: x.rig.scripts["list"], keys: k.living(k.meta, k.done, k.doneAt), args: []any{source, score, id, 1 + x.roll(4, "count")}}
			attempt(context.Background(), x.rig.rdb, c)
			parts, _ := c.reply.([]any)
			if c.err != nil || len(parts) < 3 {
				return fmt.Errorf("list answered %v, %w", c.reply, c.err)
			}
			for i := 3; i < len(parts); i += 4 {
				got = append(got, parts[i].(string), parts[i+1].(string))
			}
			if score, id = parts[1].(string), parts[2].(string); id == "" || len(got) > len(want) {
				break
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("list %s: %q, want %q", source, got, want)
		}
	}
	return nil
}
