package pawlsql

import (
	"time"

	"github.com/pawlq/pawl"
)

// row is one of the outbox.
type row struct {
	id      int64
	key     string // random: ids may come again, after a TRUNCATE
	queue   string
	kind    string
	payload []byte
	options string
	age     time.Duration // since it was inserted, by the database's clock
	stored  stored        // what options says
}

func (r *row) size() int { return len(r.payload) + len(r.options) + len(r.kind) + 256 }

// idempotencyKey is what the job is to be known by.
func (r *row) idempotencyKey() string { return r.key }

// remember is for how long Redis knows that a row was enqueued: a relay that died
// between that and the row's end, or the next one, must come back within it.
const remember = 24 * time.Hour

// item is what the relay enqueues. The same row is the same job, under one unique
// key: of its own, or else made from the row.
func (r *row) item() pawl.Item {
	opts := r.stored.options(r.age)
	if r.stored.Unique == nil {
		opts = append(opts, pawl.Unique{Key: pawl.Key("outbox", r.key), For: remember})
	}
	return pawl.Item{Args: pawl.Raw{Name: r.kind, Payload: r.payload}, Options: opts}
}
