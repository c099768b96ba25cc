package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// progress says how far long work is, on standard error: to a terminal in one line that
// changes, elsewhere in a line now and then. done is how far, and may be nil: then only the
// time is shown. It ends with stop.
func (a *app) progress(ctx context.Context, what string, done func(context.Context) (string, error)) (stop func()) {
	return a.paced(ctx, what, 0, done)
}

// wipe takes the line of a progress off a terminal, before something else is said.
func (a *app) wipe() {
	if a.errTerminal {
		_, _ = fmt.Fprint(a.err, "\r\x1b[K")
	}
}

// paced is progress of work that is known to last so long; 0 is not known.
func (a *app) paced(ctx context.Context, what string, over time.Duration, done func(context.Context) (string, error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	every := a.lines
	if a.errTerminal {
		every = a.ticks
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		begun, shown := time.Now(), false
		for {
			select {
			case <-ctx.Done():
				if shown {
					a.wipe()
				}
				return
			case <-tick.C:
			}
			text := ""
			if done != nil {
				said, err := done(ctx)
				if err != nil {
					continue
				}
				text = said + ", "
			}
			shown = true
			if over > 0 {
				text += lasting(time.Since(begun)) + " of " + lasting(over)
			} else {
				text += age(time.Since(begun))
			}
			text = visible(what) + ": " + text
			if a.errTerminal {
				_, _ = fmt.Fprint(a.err, "\r"+text+"\x1b[K")
			} else {
				_, _ = fmt.Fprintln(a.err, "pawl: "+text)
			}
		}
	})
	return func() { cancel(); ended.Wait() }
}

// counting is the done of a progress that shows in the counters of a queue, where the work
// of others counts too. total is how many there are to do; 0 is not known.
func counting(q *pawl.Queue, before pawl.Stats, total int64, counter func(pawl.Stats) int64) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		now, err := q.Stats(ctx)
		n := max(0, counter(now)-counter(before))
		if total > 0 {
			return fmt.Sprintf("%s of %s", count(n), count(total)), err
		}
		return count(n), err
	}
}
