package pawl

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DeadFilter picks dead jobs. Zero fields do not filter.
type DeadFilter struct {
	Kind   string
	Reason DeadReason
	Error  string    // substring of DeadJob.Error
	Since  time.Time // died at or after
	Until  time.Time // died before
	Limit  int       // at most so many; 0 or less: all
}

func (f *DeadFilter) matches(d *DeadJob) bool {
	return (f.Kind == "" || d.Kind == f.Kind) && (f.Reason == "" || d.Reason == f.Reason) &&
		strings.Contains(d.Error, f.Error)
}

// span is the bounds of the entries to read: their ids begin with the
// millisecond of the death, by the server's clock.
func (f *DeadFilter) span() (from, to string) {
	from, to = "-", "+"
	if !f.Since.IsZero() {
		from = strconv.FormatInt(max(0, ceilTime(f.Since)), 10)
	}
	if !f.Until.IsZero() {
		to = "(" + strconv.FormatInt(max(0, ceilTime(f.Until)), 10) + "-0"
	}
	return from, to
}

// deadPage bounds one read of post-mortems: each may hold a whole payload.
const deadPage = 64

// List walks the dead jobs that match, in the order of their deaths, in pages.
// Jobs that die, or are redriven or deleted, meanwhile may or may not be seen;
// none is seen twice, unless it was redriven and died again. An error ends the
// walk. Each page waits no longer than ctx, or 5 s if ctx has no deadline.
func (d *DeadLetters) List(ctx context.Context, f DeadFilter) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		if d.q.err != nil {
			yield(DeadJob{}, d.q.wrap("list dead", d.q.err))
			return
		}
		found := 0
		for from, to := f.span(); ; {
			page, err := await(ctx, func(ctx context.Context) ([]redis.XMessage, error) {
				return d.q.client.rdb.XRangeN(ctx, d.q.keys.dead, from, to, deadPage).Result()
			})
			if err != nil {
				yield(DeadJob{}, d.q.wrap("list dead", err))
				return
			}
			for _, entry := range page {
				job := d.entry(entry)
				if !f.matches(&job) {
					continue
				}
				if found++; !yield(job, nil) || found == f.Limit {
					return
				}
			}
			if len(page) < deadPage {
				return
			}
			from = "(" + page[len(page)-1].ID
		}
	}
}

// entry reads an entry of the dead-letter stream.
func (d *DeadLetters) entry(e redis.XMessage) DeadJob {
	body, _ := e.Values["p"].(string)
	id, _ := e.Values["i"].(string)
	return deadJob(d.q, id, e.ID, body)
}
