package chaos

import (
	"context"
	"time"
)

// Starved is the class of the fault that nobody injects: a process waited for the
// processor, or Redis for its own, for so long that it may cost a lease.
const Starved = "starved"

// watch writes down when this process was starved, or what probe asks for was
// late, by more than a third of the lease.
func watch(ctx context.Context, out *Writer, lease time.Duration, probe func(context.Context)) {
	const every = 20 * time.Millisecond
	for began := time.Now(); wait(ctx, every) == nil; began = time.Now() {
		if probe != nil {
			probe(ctx)
		}
		if took := time.Since(began); took > every+lease/3 {
			out.Write(Event{At: began.UnixMilli(), Type: OK, Op: Fault, Class: Starved, Delay: took.Milliseconds()})
		}
	}
}
