//go:build !race

package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawlq/pawl/internal/record"
)

// What holders of leases do, and those who only think that they are.

// modelVerb is a script that ends or renews leases.
type modelVerb struct {
	name  string
	model func(*modelQueue, []modelRef) string
	keys  func(*keyspace) []string
	tells bool                                // its first argument is the channel
	args  func(r modelRef, held string) []any // but id and token
}

var modelVerbs = []modelVerb{
	{"settle", (*modelQueue).settle,
		func(k *keyspace) []string {
			return []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, laneKey, k.due, k.wake}
		}, false,
		func(r modelRef, held string) []any { return []any{r.counter, held + r.window(held)} }},
	{"finish", (*modelQueue).settle,
		func(k *keyspace) []string {
			return []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, laneKey, k.due, k.wake, k.done, k.doneAt, k.prio}
		}, true,
		func(r modelRef, held string) []any {
			return append([]any{r.counter, held + r.window(held), r.record, r.number, len(r.then)}, r.words...)
		}},
	{"retry", (*modelQueue).retry,
		func(k *keyspace) []string {
			return []string{k.jobs, k.held, k.due, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey, k.done, k.doneAt}
		}, true,
		func(r modelRef, held string) []any {
			left := ""
			if r.retain > 0 {
				left = fmt.Sprintf("%d %s", r.retain, r.field)
			}
			return []any{r.record, r.number, r.counter, held, left}
		}},
	{"bury", (*modelQueue).bury,
		func(k *keyspace) []string {
			return []string{k.jobs, k.held, k.leases, k.runs, k.dead, k.index, k.meta, k.minutes, laneKey, k.due, k.wake}
		}, true,
		func(r modelRef, held string) []any {
			return []any{r.record, strings.Repeat("failed", int(r.number)), held}
		}},
	{"release", (*modelQueue).release,
		func(k *keyspace) []string { return []string{k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey} }, false,
		func(r modelRef, _ string) []any { return []any{r.number} }},
	{"extend", (*modelQueue).extend,
		func(k *keyspace) []string { return []string{k.leases, k.runs, laneKey} }, false,
		func(r modelRef, _ string) []any { return []any{r.number} }},
	{"progress", (*modelQueue).progress,
		func(k *keyspace) []string { return []string{k.leases, k.runs, laneKey} }, false,
		func(r modelRef, _ string) []any { return []any{r.record} }},
}

// finish calls one verb for a few jobs, some of which others hold by now.
func (x *modelMachine) finish() error {
	v := modelPickOne(x, "verb", x.verbs...)
	if v.name == "finish" && x.roll(2, "plain") == 0 {
		v = modelVerbs[0] // the jobs leave nothing
	}
	x.say("%s", v.name)
	w := x.worker()
	keys := v.keys(&x.q.keys)
	fixed := len(keys)
	var refs []modelRef
	var args []any
	if v.tells {
		args = append(args, x.q.keys.ended())
	}
	for range 1 + x.roll(4, "jobs") {
		j := x.job("job", modelLeased)
		r := x.ref(v.name, j)
		held := ""
		if v.name == "settle" || v.name == "finish" || v.name == "bury" || v.name == "retry" {
			keys, held = x.places(keys, fixed, j)
		}
		if v.name == "finish" && r.counter == "done" {
			keys = x.followUps(&r, keys, fixed)
		}
		refs = append(refs, r)
		args = append(append(args, r.id, r.token), v.args(r, held)...)
	}
	want := v.model(x.m, refs)
	for _, r := range refs {
		x.say("[%s %s %s %d]", r.id, r.token, r.counter, r.number)
	}
	x.say("%s", want)
	return x.ask(x.lane(w.lanes, v.name), v.name, want, keys, args...)
}

// ref names a job by the token of its holder, or by one that was, or never was.
func (x *modelMachine) ref(verb string, j *modelJob) modelRef {
	r := modelRef{id: modelID(j), token: "1-none"}
	if j == nil {
		return r
	}
	switch who := x.roll(10, "token"); {
	case who < 6 && j.place == modelLeased:
		r.token = j.token
	case who < 8 && j.before != "":
		r.token = j.before
	case who < 9 && len(j.tokens) > 0:
		r.token = j.tokens[x.roll(len(j.tokens), "older token")]
	}
	rec, err := record.Decode([]byte(j.record))
	if err != nil {
		rec = &record.Record{Payload: []byte(j.record)}
	}
	rec.LongHead, rec.Crashes = true, j.crashes
	switch verb {
	case "settle":
		r.counter = modelPickOne(x, "counter", "done", "done", "skipped", "discarded", "cancelled")
	case "finish":
		r.counter = modelPickOne(x, "counter", "done", "done", "skipped", "discarded", "cancelled")
		r.number = int64(modelPickOne(x, "kept for", 0, 1, 2000, 4000, 60000))
		rec.End = &record.End{State: r.counter, At: x.m.ms(), HasResult: true}
		r.record = string(rec.Append(nil))
	case "retry":
		r.counter = modelPickOne(x, "counter", "retried", "snoozed")
		r.number = int64(modelPickOne(x, "delay", 0, 1, 1000, 20000))
		rec.Started = x.roll(4, "started") > 0
		if r.retain = j.retain; j.retain > 0 {
			r.field = (&record.End{State: "discarded", At: x.m.ms()}).Field()
		}
		if rec.Attempts++; err == nil {
			r.record = string(rec.Append(nil))
		} else {
			r.record = j.record
		}
	case "bury":
		r.number = int64(x.roll(2, "failed"))
		rec.Started = true
		rec.Dead = &record.PostMortem{Reason: string(ReasonPermanent)}
		if err != nil {
			rec.Dead.Reason = string(ReasonCorrupt)
		}
		r.record = string(rec.Append(nil))
	case "release":
		r.number = int64(x.roll(2, "unrun"))
	case "extend":
		r.number = int64(modelPickOne(x, "visibility", 1, 1000, 30000))
	case "progress":
		r.record = modelPickOne(x, "progress", " 0 ", " 62.5 of 8 parts", " 100 a\xffb  curious")
	}
	return r
}

// check asks the check script about every id and key, or has Queue walk.
func (x *modelMachine) check() error {
	if x.viaQueue() {
		found, err := x.q.Check(context.Background())
		if errors.Is(err, ErrNotFound) && len(x.m.jobs) == 0 {
			err = nil
		}
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("Check: %v", found)
		}
		return err
	}
	k := &x.q.keys
	c := &call{script: x.rig.scripts["check"],
		keys: []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.dead, k.index, k.meta, k.done, k.doneAt}}
	names := append([]string{}, x.m.order...)
	for _, id := range names {
		c.args = append(c.args, id)
	}
	for key := range x.m.uniques {
		names = append(names, key)
		c.keys = append(c.keys, k.unique(key))
	}
	attempt(context.Background(), x.rig.rdb, c)
	parts, _ := c.reply.([]any)
	if c.err == nil && len(parts) != len(names) {
		c.err = fmt.Errorf("check answered %v", c.reply)
	}
	if c.err != nil {
		return c.err
	}
	for i, name := range names {
		if parts[i] != "" {
			return fmt.Errorf("check: %s %s", name, parts[i])
		}
	}
	return x.checkMarks()
}

// stats compares the numbers of stats.lua with a recount.
func (x *modelMachine) stats() error {
	if x.viaQueue() {
		s, err := x.q.Stats(context.Background())
		if err != nil {
			return err
		}
		got := []int64{s.Ready, s.Delayed, s.Running, s.Parked, s.Dead, s.OldestReady.Milliseconds(), s.Done, s.Total.Enqueued, s.Total.Done}
		n := x.m.recount()
		want := []int64{n[0], n[1], n[2], n[3], n[4], 0, n[6], x.m.counters["enqueued"], x.m.counters["done"]}
		if n[5] > 0 {
			want[5] = max(0, x.m.ms()-n[5])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("Stats: %v, want %v", got, want)
		}
		return nil
	}
	k := &x.q.keys
	c := &call{script: x.rig.scripts["stats"], keys: k.stats(), args: []any{canaryName}}
	attempt(context.Background(), x.rig.rdb, c)
	got := fmt.Sprint(c.reply)
	n := x.m.recount()
	want := strings.TrimSuffix(fmt.Sprint([]int64{x.m.ms(), n[0], n[1], n[2], n[3], n[4], n[5], n[6]}), "]")
	if c.err == nil && !strings.HasPrefix(got, want+" ") && got != want+"]" {
		return fmt.Errorf("stats answered %s, want %s", got, want)
	}
	return c.err
}

// recount is how many jobs are ready, delayed, running, parked and dead, and the ms
// since which the oldest ready one could run (of the leases that ran out, the
// one that did first stands for all), and how many are kept.
func (m *modelQueue) recount() (n [7]int64) {
	for _, k := range m.kept {
		if k.till > m.ms() {
			n[6]++
		}
	}
	var lapsed *modelJob
	older := func(ms int64) {
		if ms > 0 && (n[5] == 0 || ms < n[5]) {
			n[5] = ms
		}
	}
	for _, j := range m.jobs {
		switch {
		case j.place == modelDead:
			n[4]++
		case j.place == modelParked:
			n[3]++
		case j.place == modelDue && j.score > m.ms():
			n[1]++
		case j.place == modelLeased && j.score > m.ms():
			n[2]++
		case j.place == modelGone:
		default:
			n[0]++
		}
		switch {
		case j.place == modelDue && j.score <= m.ms():
			older(j.score)
		case j.place == modelPrio:
			older(j.score % 1e13)
		case j.place == modelFresh:
			older(modelMade(j))
		case j.place == modelLeased && j.score <= m.ms() && (lapsed == nil || modelByScore(j, lapsed) < 0):
			lapsed = j
		}
	}
	if lapsed != nil && !lapsed.streamed && modelHeadOf(lapsed.record).due > 0 {
		older(modelHeadOf(lapsed.record).due)
	} else if lapsed != nil {
		older(modelMade(lapsed))
	}
	return n
}
