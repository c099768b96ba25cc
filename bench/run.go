package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// run is one measurement of one system: a new store, and a session on it.
type run struct {
	sys   *system
	store *store
	n     int
	short bool
	session
}

// measure does one run.
func measure(ctx context.Context, sys *system, w *workload, n int, short bool) (values []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout(short))
	defer cancel()
	st, err := sys.store(ctx, w.redis...)
	if err != nil {
		return nil, err
	}
	defer st.close()
	s, err := sys.open(ctx, st.at)
	if err != nil {
		return nil, err
	}
	values, err = w.do(ctx, &run{sys: sys, store: st, n: n, short: short, session: s})
	return values, errors.Join(err, s.close(ctx))
}

// runTimeout is when a run has failed: every job was lost, or far too slow.
func runTimeout(short bool) time.Duration {
	if short {
		return time.Minute
	}
	return 10 * time.Minute
}

// fill enqueues all jobs as the system does it fastest.
func (r *run) fill(ctx context.Context, bytes int) error {
	return r.enqueue(ctx, load{N: r.n, Bytes: bytes})
}

// drain runs all jobs that wait, and checks that each was acknowledged. It takes
// from the start of the worker to the last acknowledgement.
func (r *run) drain(ctx context.Context, w work) (time.Duration, outcome, error) {
	w.N = r.n
	start := time.Now()
	worker, err := r.work(ctx, w)
	if err != nil {
		return 0, outcome{}, err
	}
	return r.finish(ctx, start, worker)
}

// finish waits until a worker has run all jobs, and checks them.
func (r *run) finish(ctx context.Context, start time.Time, w worker) (time.Duration, outcome, error) {
	err := w.wait(ctx, r.n)
	if err == nil {
		err = r.acknowledged(ctx, r.n, r.session)
	}
	took := time.Since(start)
	if err != nil {
		// What a worker says that was stopped too early is of no use.
		_, _ = w.stop(ctx)
		return 0, outcome{}, err
	}
	o, err := w.stop(ctx)
	if err == nil {
		err = check(r.n, o)
	}
	return took, o, err
}

// acknowledged returns once the system itself says that n jobs are done and none
// is left.
func (r *run) acknowledged(ctx context.Context, n int, sessions ...session) error {
	for {
		asked := time.Now()
		all, err := states(ctx, sessions...)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: of %d jobs %d are done, %d left", ctx.Err(), n, all.Done, all.Left)
		case err != nil:
			return err
		case all.Done > n:
			return fmt.Errorf("%d jobs are done of %d", all.Done, n)
		case all.Done == n && all.Left == 0:
			return nil
		}
		// To ask is not free, and the jobs may still run.
		_ = wait(ctx, max(time.Millisecond, pollShare*time.Since(asked)))
	}
}

// pollShare bounds what the polling takes to a twentieth of the time.
const pollShare = 20

// states is what sessions of one store say together.
func states(ctx context.Context, sessions ...session) (all state, err error) {
	for i, s := range sessions {
		one, err := s.state(ctx)
		if err != nil {
			return all, err
		}
		if one.Own || i == 0 {
			all.Done += one.Done
		}
		all.Left = one.Left
	}
	return all, nil
}

// check says what is wrong with what the workers ran, if each of n jobs had to run
// to its end.
func check(n int, outcomes ...outcome) error {
	if got := distinct(outcomes...); got != n {
		return fmt.Errorf("%d distinct jobs ran, not %d", got, n)
	}
	for _, o := range outcomes {
		if o.Alien > 0 {
			return fmt.Errorf("%d runs of jobs that were never enqueued", o.Alien)
		}
	}
	return nil
}

func ratePerSecond(n int, took time.Duration) []float64 {
	return []float64{float64(n) / took.Seconds()}
}

// wait returns after a while in which nothing is to happen.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
