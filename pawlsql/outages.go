package pawlsql

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/pawlq/pawl"
)

// outages is what a relay cannot reach at present. Its methods are called by Run
// alone.
type outages struct {
	log     *slog.Logger
	db      int               // failures of the database in a row
	queues  map[string]outage // those whose last enqueue failed; see pass
	started time.Time         // since when there is one among the queues
}

type outage struct {
	failures int
	until    time.Time // when the queue may be tried again
}

// retryPause grows from 100 ms to 5 s, half of it random.
var retryPause = pawl.Backoff{Base: 100 * time.Millisecond, Factor: 2, Max: 5 * time.Second}

// database takes the outcome of a pass.
func (o *outages) database(ctx context.Context, err error) {
	switch {
	case err != nil && o.db == 0:
		o.log.WarnContext(ctx, "pawlsql: the relay cannot use the database; it tries on", "error", err)
	case err == nil && o.db > 0:
		o.log.InfoContext(ctx, "pawlsql: the relay can use the database again", "failures", o.db)
	}
	if err == nil {
		o.db = 0
	} else {
		o.db++
	}
}

func (o *outages) databaseWait() time.Duration { return retryPause.Delay(o.db) }

// failed notes that a queue could not be enqueued to.
func (o *outages) failed(ctx context.Context, queue string, err error) {
	if len(o.queues) == 0 {
		o.queues, o.started = map[string]outage{}, time.Now()
		o.log.WarnContext(ctx, "pawlsql: jobs cannot be enqueued; their rows are kept and tried again", "queue", queue, "error", err)
	}
	n := o.queues[queue].failures + 1
	o.queues[queue] = outage{failures: n, until: time.Now().Add(retryPause.Delay(n))}
}

// worked notes that a queue took a job, or refused one as it should.
func (o *outages) worked(ctx context.Context, queue string) {
	if _, down := o.queues[queue]; down {
		delete(o.queues, queue)
		o.over(ctx)
	}
}

// clear is for when no row of any queue is left to try.
func (o *outages) clear(ctx context.Context) {
	if len(o.queues) > 0 {
		clear(o.queues)
		o.over(ctx)
	}
}

func (o *outages) over(ctx context.Context) {
	if len(o.queues) == 0 {
		o.log.InfoContext(ctx, "pawlsql: jobs are enqueued again", "after", time.Since(o.started).Round(time.Millisecond))
	}
}

// waiting are the queues that must not be tried yet, sorted.
func (o *outages) waiting() []string {
	var list []string
	for _, queue := range slices.Sorted(maps.Keys(o.queues)) {
		if time.Now().Before(o.queues[queue].until) {
			list = append(list, queue)
		}
	}
	return list
}

// next is when the first of the queues may be tried again.
func (o *outages) next() (until time.Time, down bool) {
	for _, q := range o.queues {
		if !down || q.until.Before(until) {
			until, down = q.until, true
		}
	}
	return until, down
}
