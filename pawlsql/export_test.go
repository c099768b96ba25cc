package pawlsql

import "time"

// OnStep calls fn where a relay could die: "taken", "enqueued", "deleted" and
// "committed".
func (r *Relay) OnStep(fn func(name string)) { r.step = fn }

// SetPatience bounds a call to Redis, which a server that is away else holds for 5 s.
func (r *Relay) SetPatience(d time.Duration) { r.patience = d }

// SetFrozen is after how long PostgreSQL ends a relay's transaction.
func (r *Relay) SetFrozen(d time.Duration) { r.frozen = d }

// Hurry has a batch end after d.
func (r *Relay) Hurry(d time.Duration) { r.whole = d }
