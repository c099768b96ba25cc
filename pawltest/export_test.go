package pawltest

const MaxRunsOfAJob = maxRunsOfAJob

// SetLimit is for drains whose failure is wanted.
func (e *Env) SetLimit(n int) { e.limit = n }
