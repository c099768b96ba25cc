package main

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
)

// errTry is the failure of a job that has to be tried again.
var errTry = errors.New("bench: the first try of each tenth job fails")

// tally counts what the handlers of one worker ran.
type tally struct {
	work   work
	tries  []atomic.Int32 // by number
	late   []int64        // by number: the start of the last try after it was due, µs
	runs   atomic.Int64
	ended  atomic.Int64 // distinct jobs that ran to their end
	alien  atomic.Int64 // runs of jobs that nobody enqueued
	goal   atomic.Int64
	met    chan struct{}
	fail   sync.Once
	failed chan struct{}
	err    error
}

func newTally(w work) *tally {
	t := &tally{work: w, tries: make([]atomic.Int32, w.N), met: make(chan struct{}, 1), failed: make(chan struct{})}
	if w.Late {
		t.late = make([]int64, w.N)
	}
	t.goal.Store(math.MaxInt64)
	return t
}

// run is the handler: all it does is count.
func (t *tally) run(p parcel) error {
	t.runs.Add(1)
	if p.Number < 0 || p.Number >= len(t.tries) {
		t.alien.Add(1)
		return nil
	}
	if t.late != nil {
		atomic.StoreInt64(&t.late[p.Number], now()-p.Due)
	}
	try, ends := t.tries[p.Number].Add(1), int32(1)
	if t.work.fails(p.Number) {
		ends = 2
	}
	if try < ends {
		return errTry
	}
	if try == ends && t.ended.Add(1) >= t.goal.Load() {
		select {
		case t.met <- struct{}{}:
		default:
		}
	}
	return nil
}

// wait returns when n distinct jobs have run to their end.
func (t *tally) wait(ctx context.Context, n int) error {
	t.goal.Store(int64(n))
	for t.ended.Load() < int64(n) {
		select {
		case <-t.met:
		case <-t.failed:
			return t.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stopped ends a wait for a worker that is no more.
func (t *tally) stopped(err error) {
	t.fail.Do(func() { t.err = err; close(t.failed) })
}

// outcome is what a worker ran, in a form that other processes and languages can
// give too.
type outcome struct {
	Runs  int    `json:"runs"`
	Alien int    `json:"alien"`
	Seen  []byte `json:"seen"` // a bit for each number that ran to its end; in base64
	// Late is by number; empty unless asked for.
	Late []int64 `json:"late"`
}

func (t *tally) outcome() outcome {
	o := outcome{Runs: int(t.runs.Load()), Alien: int(t.alien.Load()), Late: t.late, Seen: make([]byte, (len(t.tries)+7)/8)}
	for i := range t.tries {
		ends := int32(1)
		if t.work.fails(i) {
			ends = 2
		}
		if t.tries[i].Load() >= ends {
			o.Seen[i/8] |= 1 << (i % 8)
		}
	}
	return o
}

// distinct is how many jobs all these workers have run to their end.
func distinct(outcomes ...outcome) int {
	var all []byte
	for _, o := range outcomes {
		for len(all) < len(o.Seen) {
			all = append(all, 0)
		}
		for i, b := range o.Seen {
			all[i] |= b
		}
	}
	n := 0
	for _, b := range all {
		n += bits.OnesCount8(b)
	}
	return n
}
