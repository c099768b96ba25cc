package main

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is jobs to enqueue.
type load struct {
	First   int `json:"first"` // the number of the first job
	N       int `json:"n"`
	Bytes   int `json:"bytes"`   // of a payload
	Callers int `json:"callers"` // that enqueue at once, one job a call; 0: in bulk
	// Every, if set, is the time between two jobs, whatever became of those before
	// (open loop).
	Every time.Duration `json:"every"` // nanoseconds
	Due   int64         `json:"due"`   // microseconds of the wall clock; 0: at once
	// Retry: some will fail. BullMQ has to be told, and stores it with each job.
	Retry bool `json:"retry"`
}

const (
	bulkCallers = 4
	// fillCallers fill a queue of a system that has no call for many jobs.
	fillCallers = 64
)

// slack is by how much a timer may be late at no cost for the system: Node's have
// a resolution of 1 ms. Beyond it something has held the generator up, and jobs
// count from when they should have been enqueued.
const slack = time.Millisecond

// sender is how a system takes jobs. A due of 0 means at once.
type sender struct {
	one   func(ctx context.Context, p parcel, due int64) error
	many  func(ctx context.Context, ps []parcel, due int64) error // nil: it has none
	batch int                                                     // what many takes best
}

func (l load) send(ctx context.Context, s sender) error {
	switch {
	case l.Every > 0:
		return l.pace(ctx, s)
	case l.Callers == 0 && s.many != nil:
		return l.bulk(ctx, s)
	}
	return l.calls(ctx, s)
}

func (l load) calls(ctx context.Context, s sender) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range cmp.Or(l.Callers, fillCallers) {
		g.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= l.N {
					return nil
				}
				if err := s.one(ctx, l.parcel(i), l.Due); err != nil {
					return fmt.Errorf("enqueue job %d: %w", l.First+i, err)
				}
			}
		})
	}
	return g.Wait()
}

func (l load) bulk(ctx context.Context, s sender) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range bulkCallers {
		g.Go(func() error {
			for {
				from := int(next.Add(int64(s.batch))) - s.batch
				if from >= l.N {
					return nil
				}
				ps := make([]parcel, min(s.batch, l.N-from))
				for i := range ps {
					ps[i] = l.parcel(from + i)
				}
				if err := s.many(ctx, ps, l.Due); err != nil {
					return fmt.Errorf("enqueue jobs from %d on: %w", l.First+from, err)
				}
			}
		})
	}
	return g.Wait()
}

func (l load) pace(ctx context.Context, s sender) error {
	g, ctx := errgroup.WithContext(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	start := time.Now()
	for i := range l.N {
		at := start.Add(time.Duration(i) * l.Every)
		timer.Reset(time.Until(at))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return cmp.Or(g.Wait(), ctx.Err())
		}
		g.Go(func() error {
			due := time.Now()
			if due.Sub(at) > slack {
				due = at
			}
			return s.one(ctx, newParcel(l.First+i, due.UnixMicro(), l.Bytes), 0)
		})
	}
	return g.Wait()
}

func (l load) parcel(i int) parcel {
	return newParcel(l.First+i, cmp.Or(l.Due, now()), l.Bytes)
}
