//go:build !race

package pawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The operations of a machine. Each draws what it does, does it to the queue
// and to the model, and compares the answers. Every history has the first few.
const modelAlways = 3

var modelOps = []struct {
	name   string
	weight int
	run    func(*modelMachine) error
}{
	{"enqueue", 15, (*modelMachine).enqueue},
	{"lease", 27, (*modelMachine).lease},
	{"finish", 26, (*modelMachine).finish},
	{"claim", 8, (*modelMachine).claim},
	{"pass", 10, (*modelMachine).passTime},
	{"repeat", 7, (*modelMachine).repeat},
	{"cancel", 4, (*modelMachine).cancel},
	{"redrive", 5, (*modelMachine).redrive},
	{"delete", 2, (*modelMachine).delete},
	{"purge", 2, (*modelMachine).purge},
	{"reschedule", 4, (*modelMachine).reschedule},
	{"pause", 2, (*modelMachine).pause},
	{"trim", 1, (*modelMachine).trim},
	{"forget", 1, (*modelMachine).forgetKept},
	{"find", 1, (*modelMachine).find},
	{"list", 2, (*modelMachine).list},
	{"over", 2, (*modelMachine).over},
	{"late", 3, (*modelMachine).late},
	{"lapse", 3, (*modelMachine).lapse},
	{"check", 2, (*modelMachine).check},
	{"stats", 2, (*modelMachine).stats},
	{"crash", 1, (*modelMachine).crash},
	{"forget", 1, (*modelMachine).forget},
}

// swarm draws what a history does much of, little of, and not at all: a bug that
// takes three rare things in a row is met where there is nothing else to do, and
// not where each history does a little of all (Groce and others, "Swarm Testing",
// ISSTA 2012).
func (x *modelMachine) swarm() {
	x.verbs = modelVerbs[1:]
	if x.roll(2, "verbs") == 0 {
		at := x.roll(len(x.verbs), "verb")
		x.verbs = append([]modelVerb{x.verbs[at]}, x.verbs[x.roll(len(x.verbs), "another verb")])
	}
	x.keys = modelPickOne(x, "keys", 1, 1, 2, 3)
	for i, op := range modelOps {
		share := modelPickOne(x, "share of "+op.name, 0, 1, 1, 5)
		if i < modelAlways {
			share = max(share, 1)
		}
		x.weights = append(x.weights, op.weight*share)
		x.weight += op.weight * share
	}
}

// step does one operation and compares the whole state.
func (x *modelMachine) step() error {
	at := x.roll(x.weight, "operation")
	for i, op := range modelOps {
		if at -= x.weights[i]; at >= 0 {
			continue
		}
		x.note("%s", op.name)
		err := op.run(x)
		if err == nil {
			err = x.compare()
		}
		if err != nil {
			err = fmt.Errorf("%w\nhistory:\n\t%s", err, strings.Join(x.log, "\n\t"))
		}
		return err
	}
	return nil
}

func (x *modelMachine) compare() error {
	actual, err := x.after, error(nil)
	if x.after = nil; actual == nil {
		actual, err = x.rig.read(&x.q.keys)
	}
	if err != nil {
		return err
	}
	return x.m.compare(actual)
}

// note starts a line of the history, or says more in the last one.
func (x *modelMachine) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf("%d ", x.m.us-modelStart)+fmt.Sprintf(format, args...))
}

func (x *modelMachine) say(format string, args ...any) {
	x.log[len(x.log)-1] += " " + fmt.Sprintf(format, args...)
}

func modelPickOne[T any](x *modelMachine, what string, list ...T) T {
	return list[x.roll(len(list), what)]
}

// viaQueue is whether to go through the methods of Queue this time.
func (x *modelMachine) viaQueue() bool {
	via := x.rig.stock && x.roll(3, "via Queue") == 0
	if via {
		x.say("via Queue")
	}
	return via
}

// job is a job in one of the places, or else any; nil if there is none.
func (x *modelMachine) job(what string, places ...modelPlace) *modelJob {
	var some []string
	for _, id := range x.m.order {
		if slices.Contains(places, x.m.jobs[id].place) {
			some = append(some, id)
		}
	}
	if len(some) == 0 || x.roll(8, "any job") == 0 {
		some = x.m.order[max(0, len(x.m.order)-40):]
	}
	if len(some) == 0 {
		return nil
	}
	return x.m.jobs[some[x.roll(len(some), what)]]
}

func (x *modelMachine) worker() *modelWorker {
	i := x.roll(len(x.workers), "worker")
	x.say("worker %d", i)
	return x.workers[i]
}

func (x *modelMachine) lease() error {
	w := x.worker()
	x.nonce++
	l := &modelLease{n: 1 + x.roll(5, "n"), visibility: w.visibility, max: w.crashes, nonce: fmt.Sprint("n", x.nonce),
		suspect: x.roll(4, "suspect") > 0, expired: x.roll(6, "expired") > 0}
	if x.roll(12, "many") == 0 {
		l.n = 30
	}
	k := &x.q.keys
	sent, err := x.send(x.lane(w.lanes, "lease"), "lease",
		[]string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, laneKey},
		l.n, l.visibility, l.nonce, l.max, l.suspect, l.expired, "9223372036854775808")
	if err != nil {
		return err
	}
	sent.lease = l
	after, err := x.rig.read(&x.q.keys)
	if err != nil {
		return err
	}
	if err := x.m.lease(l, sent.call.reply, after); err != nil {
		return fmt.Errorf("%w; asked for %d, suspect %t, expired %t, got %q", err, l.n, l.suspect, l.expired, l.picks)
	}
	x.say("n %d suspect %t expired %t: %v", l.n, l.suspect, l.expired, l.ids)
	x.after = after
	return x.wakes(l, after)
}

// wakes judges the tokens that a lease leaves: none if it took all there is,
// and enough for what it left.
func (x *modelMachine) wakes(l *modelLease, after modelState) error {
	tokens := int(max(0, modelNumber("0"+after["wake"])))
	least, most := 0, 0
	for _, j := range x.m.jobs {
		leased := j.place == modelLeased && j.score <= x.m.ms()
		near := j.place == modelDue && j.score <= x.m.ms()+10000
		now := leased || j.place == modelDue && j.score <= x.m.ms() || j.place == modelPrio || j.place == modelFresh
		if _, suspect := l.outcome(j); now && !suspect {
			least++
		}
		if now || near {
			most++
		}
	}
	if !l.full(x.m) || x.m.paused > x.m.ms() {
		least, most = 0, 0
	}
	if tokens < min(least, 2) || tokens > min(most, 2) {
		return fmt.Errorf("lease: left %d tokens, want %d to %d", tokens, min(least, 2), min(most, 2))
	}
	x.m.wake = tokens
	return nil
}

// repeat sends the last call of a lane again.
func (x *modelMachine) repeat() error {
	lanes := x.remembered(1)
	if len(lanes) == 0 {
		return nil
	}
	l := modelPickOne(x, "lane", lanes...)
	s := l.sent[len(l.sent)-1]
	x.say("of lane %s", l.name)
	attempt(context.Background(), x.rig.rdb, s.call)
	if s.call.err != nil || s.lease == nil {
		return modelOrElse(s.call.err, s.check)
	}
	return x.m.leaseAgain(s.lease, s.call.reply)
}

func modelOrElse(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

// late has an older call of a lane arrive after a newer one.
func (x *modelMachine) late() error {
	lanes := x.remembered(2)
	if len(lanes) == 0 {
		return nil
	}
	l := modelPickOne(x, "lane", lanes...)
	s := l.sent[x.roll(len(l.sent)-1, "call")]
	x.say("in lane %s", l.name)
	attempt(context.Background(), x.rig.rdb, s.call)
	if got := fmt.Sprint(s.call.reply); s.call.err == nil && got != "stale" && got != "[stale]" {
		return fmt.Errorf("a late %s answered %v", s.call.script.name, got)
	}
	return s.call.err
}

// forget deletes a lane, as its TTL would.
func (x *modelMachine) forget() error {
	lanes := x.remembered(1)
	if len(lanes) == 0 {
		return nil
	}
	l := modelPickOne(x, "lane", lanes...)
	l.sent, l.expires = nil, 0
	return x.rig.rdb.Del(context.Background(), l.lane.key).Err()
}

// passTime moves the clock: a little, past a lease or a due time, past the
// memory of lanes, or back.
func (x *modelMachine) passTime() error {
	us := modelPickOne(x, "time", 1, 400, 999, 1000, 600_000, 1_000_000, 3_000_000, 0, 0, 0, 30_000_000, 121_000_000, -700_000)
	if us == 0 { // to the moment, or just before or after it
		next := modelNumber(x.m.nextWork(x.roll(2, "due only") == 0))
		us = max(0, int(next)*1000) + modelPickOne(x, "beside", -1, 0, 1, 1000)
	}
	x.say("%d us", us)
	return x.moveClock(int64(us))
}

func (x *modelMachine) moveClock(us int64) error {
	held, marked := maps.Clone(x.m.uniques), maps.Clone(x.m.idems)
	x.m.pass(us)
	var expired []string
	for key := range held {
		if _, still := x.m.uniques[key]; !still {
			expired = append(expired, x.q.keys.unique(key))
		}
	}
	for key := range marked {
		if _, still := x.m.idems[key]; !still {
			expired = append(expired, x.q.keys.idem(key))
		}
	}
	if us < 0 {
		for _, l := range x.remembered(0) {
			l.expires += us
		}
	}
	return x.rig.setClock(x.m.us, expired)
}

// crash ends a worker: another takes its place, and its leases run out.
func (x *modelMachine) crash() error {
	w := x.worker()
	w.lanes = map[string]*modelLane{}
	return x.moveClock(w.visibility*1000 + 1000)
}

// lapse has a lease run out at once, by hand.
func (x *modelMachine) lapse() error {
	j := x.job("job", modelLeased)
	if j == nil || j.place != modelLeased || j.score == 0 {
		return nil
	}
	j.score = x.m.ms() - int64(x.roll(3, "ago"))
	x.say("%s", j.id)
	return x.rig.rdb.Do(context.Background(), "ZADD", x.q.keys.leases, "XX", j.score, j.id).Err()
}
