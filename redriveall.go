package pawl

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redrive says how jobs go back. The zero Redrive moves all at once.
type Redrive struct {
	// DryRun changes nothing: the report says what would be moved, and what
	// refused, if no job came or went meanwhile. Moved is 0.
	DryRun bool
	// Over spreads the jobs evenly over a time, so that a redrive is not an
	// outage of its own: the first goes at once, and the call ends with the last
	// of n, after Over·(n−1)/n. At most 100 years.
	Over time.Duration
	// StopAfter ends the redrive once this many of its jobs died again. Without
	// Over, no more than this many are under way at once: the next ones are moved
	// as those before them end, retries included, so that the call lasts nearly as
	// long as the jobs do; it does not wait for the last ones. 0: it does not stop.
	StopAfter int
}

// RedriveAll is Redrive of all that match and are dead when the call starts, the
// oldest death first: a job that dies again meanwhile is not moved twice. It
// lasts until it is done or ctx ends; of a call that was ended, by its context or
// by a crash of the program, what it has moved is moved and the rest still dead,
// so that it can be made again. Several at once move each job once. A report
// whose DiedAgain has come to StopAfter is of a redrive that was stopped.
//
// Errors: ErrInvalid, also of a filter that nothing can match; ErrNotFound if the queue was never used;
// ErrFull; ErrUnconfirmed, and some more may have been moved than the report
// says; the context's; and, once all others were moved, that of a RefusedRedrive.
func (d *DeadLetters) RedriveAll(ctx context.Context, f DeadFilter, how Redrive) (RedriveReport, error) {
	r := &redriving{d: d, how: how, begun: time.Now()}
	err := r.check()
	if err == nil {
		r.top, err = d.begin(ctx, f)
	}
	if err == nil && r.top != "" {
		r.seen = r.top
		err = r.run(ctx, f)
	}
	r.report.Stopped = r.stopped()
	if err == nil {
		err = r.report.mistyped()
	}
	return r.report, d.q.wrap("redrive all", err)
}

// redriving is a RedriveAll under way.
type redriving struct {
	d      *DeadLetters
	how    Redrive
	report RedriveReport
	begun  time.Time
	total  int               // that match, if Over is given
	done   int               // that were looked at
	top    string            // the last entry to look at
	dry    map[string]string // of a DryRun; see DeadLetters.redrive

	moved    map[string]bool // by StopAfter: all that were moved
	underway map[string]bool // of them, those that have not ended; without Over
	seen     string          // the last entry that was looked at for deaths anew
}

func (r *redriving) check() error {
	switch {
	case r.d.q.err != nil:
		return r.d.q.err
	case r.how.Over < 0 || r.how.Over > maxWait:
		return invalidf("Redrive.Over is %v: give a time of at most 100 years, or 0 for at once", r.how.Over)
	case r.how.StopAfter < 0:
		return invalidf("Redrive.StopAfter is %d: give a number of jobs, or 0 not to stop", r.how.StopAfter)
	}
	return nil
}

func (r *redriving) run(ctx context.Context, f DeadFilter) error {
	if r.how.DryRun {
		r.dry, r.how.Over, r.how.StopAfter = map[string]string{}, 0, 0
	}
	if r.how.StopAfter > 0 {
		r.moved, r.underway = map[string]bool{}, map[string]bool{}
	}
	if r.how.Over > 0 {
		err := r.each(ctx, f, func(page []redis.XMessage) error { r.total += len(page); return nil })
		if err != nil {
			return err
		}
	}
	err := r.each(ctx, f, func(page []redis.XMessage) error {
		for len(page) > 0 && !r.stopped() {
			n, err := r.allowance(ctx, len(page))
			if err != nil || r.stopped() {
				return err
			}
			_, some, err := r.d.redrive(ctx, page[:n], r.dry, r.note)
			r.report.add(some)
			if err != nil {
				return err
			}
			r.done += n
			page = page[n:]
		}
		return nil
	})
	if err == nil && r.moved != nil {
		err = r.recount(ctx)
	}
	return err
}

func (r *redriving) note(id string) {
	if r.moved != nil {
		r.moved[id] = true
		if r.how.Over == 0 {
			r.underway[id] = true
		}
	}
}

func (r *redriving) stopped() bool {
	return r.how.StopAfter > 0 && r.report.DiedAgain >= r.how.StopAfter
}

// each hands on what matches, until the redrive is stopped.
func (r *redriving) each(ctx context.Context, f DeadFilter, do func([]redis.XMessage) error) error {
	return r.d.matchUpTo(ctx, f, r.top, func(matching []deadEntry) (more bool, err error) {
		err = do(messages(matching))
		return !r.stopped(), err
	})
}

// A paced redrive moves what is due every so often, not job by job; one that
// waits for its jobs looks how they are doing.
const (
	redriveTick = 10 * time.Millisecond
	redriveLook = 50 * time.Millisecond
)

// allowance waits until at least one of n jobs may be moved, and is how many. It
// is 0 only if the redrive was stopped.
func (r *redriving) allowance(ctx context.Context, n int) (int, error) {
	switch {
	case r.how.Over == 0 && r.how.StopAfter == 0:
		return n, nil
	case r.how.Over > 0:
		next := r.begun.Add(time.Duration(float64(r.how.Over) * float64(r.done) / float64(max(1, r.total))))
		if err := sleep(ctx, max(0, time.Until(next))); err != nil {
			return 0, err
		}
		due := int(float64(time.Since(r.begun)+redriveTick/2) / float64(r.how.Over) * float64(r.total))
		if r.moved != nil {
			if err := r.recount(ctx); err != nil {
				return 0, err
			}
		}
		return max(1, min(n, due-r.done)), nil
	}
	for pause := redriveLook; ; pause = min(2*pause, time.Second) {
		if len(r.underway) > 0 {
			if err := r.recount(ctx); err != nil || r.stopped() {
				return 0, err
			}
		}
		if free := r.how.StopAfter - r.report.DiedAgain - len(r.underway); free > 0 {
			return min(n, free), nil
		}
		if err := sleep(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// recount finds out which of the moved jobs have ended, and which of them died.
func (r *redriving) recount(ctx context.Context) error {
	// First who has ended, then who has died: else a death in between is missed.
	if err := r.forgetEnded(ctx); err != nil {
		return err
	}
	return r.d.walk(ctx, "("+r.seen, "+", func(page []redis.XMessage) (more bool, err error) {
		for _, e := range page {
			if id, _ := e.Values["i"].(string); r.moved[id] {
				r.report.DiedAgain++
				delete(r.moved, id) // a death is counted once, whoever redrives it again
				delete(r.underway, id)
			}
			r.seen = e.ID
		}
		return true, nil
	})
}

// forgetEnded takes those that have ended off the list of those under way. A
// redriven job is in held until it ends, however often it is tried again.
func (r *redriving) forgetEnded(ctx context.Context) error {
	for ids := range slices.Chunk(slices.Collect(maps.Keys(r.underway)), redrivePage) {
		alive, err := await(ctx, r.d.q.client.rdb, func(ctx context.Context) ([]*redis.BoolCmd, error) {
			pipe := r.d.q.client.rdb.Pipeline()
			cmds := make([]*redis.BoolCmd, len(ids))
			for i, id := range ids {
				cmds[i] = pipe.HExists(ctx, r.d.q.keys.held, id)
			}
			_, err := pipe.Exec(ctx)
			return cmds, err
		})
		if err != nil {
			return err
		}
		for i, id := range ids {
			if !alive[i].Val() {
				delete(r.underway, id)
			}
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil || d == 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
