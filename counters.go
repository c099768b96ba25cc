package pawl

import (
	"strconv"
	"strings"
)

// Counters are of the whole life of a queue, and only grow. Started counts leases:
// those too of which no handler ran, since the key of an Idempotency was in use (then
// Snoozed counts as well) or done (Skipped). Failed counts attempts, Dead counts jobs.
// Enqueued counts jobs that were added: Duplicate is beside it. Each is 0 before its
// first event.
type Counters struct {
	Enqueued, Duplicate, Started, Done, Failed, Retried, Snoozed, Released int64
	// Crashed counts leases that ran out; Expired, the dead whose ExpireIn had
	// passed; Purged, jobs that were deleted, waiting or dead; Dropped, dead jobs
	// that DeadRetention let go.
	Crashed, Dead, Redriven, Discarded, Cancelled, Expired, Purged, Dropped int64
	// Skipped counts, of those in Done, the jobs that were not run because a job
	// with the key of their Idempotency had been done.
	Skipped int64
	// Lost counts ids whose record or post-mortem had gone; Healed, what was put
	// right: jobs that had lost their place or their entry in the index of the
	// dead, unique keys without a job. Keys were evicted, edited or lost.
	Lost, Healed int64
}

// counterNames is the order in which lua/lib/tally.lua notes the counters at the
// start of a minute. It may grow at its end, and not change otherwise.
var counterNames = [...]string{"enqueued", "duplicate", "started", "done", "failed", "retried", "snoozed", "released",
	"crashed", "dead", "redriven", "discarded", "cancelled", "expired", "purged", "dropped", "lost", "healed", "skipped"}

// fields are the counters in the order of counterNames.
func (c *Counters) fields() [len(counterNames)]*int64 {
	return [...]*int64{&c.Enqueued, &c.Duplicate, &c.Started, &c.Done, &c.Failed, &c.Retried, &c.Snoozed, &c.Released,
		&c.Crashed, &c.Dead, &c.Redriven, &c.Discarded, &c.Cancelled, &c.Expired, &c.Purged, &c.Dropped, &c.Lost, &c.Healed, &c.Skipped}
}

// set takes a field of meta, if it is a counter.
func (c *Counters) set(field, value string) {
	name, ok := strings.CutPrefix(field, "n:")
	if !ok {
		return
	}
	for i, p := range c.fields() {
		if counterNames[i] == name {
			*p, _ = strconv.ParseInt(value, 10, 64)
		}
	}
}

// since is what was counted since before. A counter that was edited in between
// counted nothing.
func (c *Counters) since(before *Counters) (d Counters) {
	now, then, delta := c.fields(), before.fields(), d.fields()
	for i := range now {
		*delta[i] = max(0, *now[i]-*then[i])
	}
	return d
}
