package pawl

import (
	"time"

	"github.com/pawlq/pawl/internal/record"
)

// Idempotency has the worker skip the job if one with this key has been done
// already, and wait while one with this key runs. Keys are the queue's, shared by
// all its kinds. Give it to jobs that stand for one effect but cannot be told
// apart at their enqueue, as the events of a broker that delivers some twice;
// Unique keeps such jobs out of the queue while the first one lives.
//
// The worker marks the key before it calls the handler, and the mark becomes
// "done" in the script that stores the job's success. A job whose key is done
// ends unrun: it counts as Done and as Skipped, and OnSkipped tells. One whose key
// runs elsewhere is put back for a moment, 10 s at most, as by Snooze: no attempt
// is spent. A run that does not end as done, whatever its end, gives the key up,
// so that the retry of the job, or another one, may have it. The mark of a run
// whose worker died ends with its lease.
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
