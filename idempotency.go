package pawl

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// Idempotency has the worker skip the job if one with this key has been done
// already, and wait while one with this key runs. Keys are the queue's, shared by
// all its kinds. Give it to jobs that stand for one effect and are enqueued apart,
// as when a broker delivers an event twice, hours apart. Unique keeps such jobs out
// of the queue while the first one lives.
//
// The worker marks the key before it calls the handler, and the mark becomes
// "done" in the script that stores the job's success. A job whose key is done
// ends unrun: it counts as Done and as Skipped, and OnSkipped tells. One whose key
// runs elsewhere is put back for a moment, 10 s at most, as by Snooze: no attempt
// is spent. A run that does not end as done, whatever its end, gives the key up,
// so that the retry of the job, or another one, may have it. If its worker died, the
// job's next run has it.
//
// It covers duplicates of a job, and a job that is delivered again after its
// success was stored. It does not cover a crash between the handler's effect and
// the moment at which its success is stored, nor a lease that ran out while its
// handler went on: then the effect may happen twice, and only the system that it
// happens in can prevent that, by RawJob.IdempotencyKey.
type Idempotency struct {
	// Key is what the effect is for, 1 to 512 bytes; make it with Key. It is
	// RawJob.IdempotencyKey, too.
	Key string
	// Window is how long after the success of this job others with its key are
	// skipped. It costs the key's memory for as long. Default 24 h; at most 100
	// years.
	Window time.Duration
}

const (
	maxIdempotencyKey    = maxUniqueKey // bytes
	defaultIdempotentFor = 24 * time.Hour
)

func (i Idempotency) apply(s *settings) error {
	switch {
	case s.idempotency != nil:
		return twice("Idempotency")
	case i.Key == "":
		return invalidf(`Idempotency.Key is empty: say what the effect is for, such as Key("charge", order)`)
	case len(i.Key) > maxIdempotencyKey:
		return invalidf("Idempotency.Key has %d bytes: use at most %d, such as a hash of it", len(i.Key), maxIdempotencyKey)
	case i.Window < 0:
		return invalidf("Idempotency.Window is %v: for the default of %v, leave it out", i.Window, defaultIdempotentFor)
	case i.Window > maxWait:
		return invalidf("Idempotency.Window is %v: use at most 100 years", i.Window)
	case i.Window == 0:
		i.Window = defaultIdempotentFor
	}
	s.idempotency = &i
	return nil
}

func (i *Idempotency) store(r *record.Record) {
	if i != nil {
		r.Idempotency = &record.Idempotency{Key: i.Key, Window: i.Window}
	}
}

// idempotencyOf is the key that a record has, "" if it has none.
func idempotencyOf(r *record.Record) string {
	if r.Idempotency == nil {
		return ""
	}
	return r.Idempotency.Key
}

// claim marks the job's idempotency key, or is the outcome of a job that is not to
// be run now. It waits for as long as Redis does not answer; the lease is renewed
// meanwhile, and if it is lost all the same, the fence keeps the mark from being
// made.
func (r *run) claim() *outcome {
	if !r.unclaimed {
		return nil
	}
	key := r.rec.Idempotency.Key
	a := r.feed.claims.ask(r)
	by, _ := jobid.FromText(a.holder)
	switch a.mark {
	case 'k', 'm':
		if a.mark == 'm' {
			r.job.Logger().Warn("pawl: an idempotency key is of a wrong type, as pawl never makes one, and prevents nothing; delete it",
				"key", r.feed.q.keys.idem(key))
		}
		r.feed.mu.Lock()
		r.unclaimed, r.started = false, time.Now()
		r.bound()
		r.feed.mu.Unlock()
		r.beSeen()
		return nil
	case 'd':
		r.job.Logger().Debug("pawl: job skipped: another was done under its idempotency key", "key", key, "by", by)
		return &outcome{run: r, verb: verbSettle, counter: "skipped", event: r.event(nil)}
	case 'b':
		err := fmt.Errorf("job %s runs under the idempotency key %q", by, key)
		started := r.rec.Started
		out := r.putBack(busyPause(time.Duration(a.ms)*time.Millisecond), "snoozed", err, func(rec *record.Record) { rec.Started = started })
		out.event = r.event(err)
		return out
	case 'c':
		return (&outcome{run: r}).cancelled()
	case 'l':
		r.reportLost()
	}
	return r.interrupted()
}

// busyPause is how long a job waits whose key is in use by one that was leased for
// that long: about as long again. So it comes a little after the end of a short
// run, and asks less and less often during a long one.
func busyPause(leased time.Duration) time.Duration {
	d := min(max(leased, 100*time.Millisecond), 10*time.Second)
	return d/2 + rand.N(d/2)
}

// window is for how long a job that is done keeps others of its key from running.
func (r *run) window() time.Duration {
	// What another producer wrote has not been checked.
	if w := r.rec.Idempotency.Window; w > 0 {
		return min(w, maxWait)
	}
	return defaultIdempotentFor
}

// holds adds the keys that end with a job to its call, and tells the script where
// they are: its unique key, then its idempotency key.
func (o *outcome) holds(c *call, k *keyspace, fixed int) any {
	unique := ""
	if u := o.run.rec.Unique; u != nil {
		unique = u.Key
	}
	idem := idempotencyOf(o.run.rec)
	if o.counter == "skipped" {
		idem = "" // it is the other's
	}
	keys, word := k.heldBy(c.keys, fixed, unique, idem)
	c.keys = keys
	if (o.verb == verbSettle || o.verb == verbFinish) && idem != "" {
		window := time.Duration(0)
		if o.counter == "done" {
			window = o.run.window()
		}
		word = fmt.Sprint(word, " ", ceilMillis(window))
	}
	return word
}

// heldBy adds a job's unique and idempotency key, "" for none, to the keys of a
// call, and returns their places behind the fixed ones as the scripts read them.
func (k *keyspace) heldBy(keys []string, fixed int, unique, idem string) (_ []string, places any) {
	if unique == "" && idem == "" {
		return keys, 0 // most jobs: it costs nothing
	}
	word := "0"
	if unique != "" {
		keys = append(keys, k.unique(unique))
		word = strconv.Itoa(len(keys) - fixed)
	}
	if idem != "" {
		keys = append(keys, k.idem(idem))
		word += " " + strconv.Itoa(len(keys)-fixed)
	}
	return keys, word
}
