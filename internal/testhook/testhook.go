// Package testhook is the door through which packages pawltest and chaos reach into
// package pawl, for what a test may do and a program may not. Package pawl fills
// it when it is loaded. Since pawl imports this package, its types are any here:
// a worker is a *pawl.Worker, a client a *pawl.Client, args a pawl.Args and
// options a []pawl.Option.
package testhook

import (
	"time"

	"github.com/google/uuid"

	"github.com/pawlq/pawl/internal/record"
)

// View is a worker as it stands.
type View struct {
	Client any
	Queues []string
	// Used: Run was called.
	Used bool
	// Busy: it holds jobs, or is about to ask for some.
	Busy bool
	// Next is when its queues may have work again, as they said when they were
	// last asked; zero if they have none in sight.
	Next time.Time
}

var (
	// Look looks at a worker.
	Look func(worker any) View
	// Copy is a worker like this one that has not run, and fires no schedules. Neither it nor another
	// copy may run beside it.
	Copy func(worker any) any
	// Abandon ends a running worker as kill -9 would, except that its handlers
	// have their contexts cancelled. No call is sent once its Run has returned.
	Abandon func(worker any)
	// Codec is the pawl.Codec of a client.
	Codec func(client any) any
	// Job is the pawl.RawJob that a record describes, as its next run would see it.
	Job func(client any, queue string, id uuid.UUID, rec *record.Record) any
	// Encode is what enqueuing args with options would store, without the
	// headers that Config.Inject adds, and the value that the codec encoded.
	Encode func(client any, queue string, args, options any) (record []byte, value any, err error)
	// Scripts has each script's text be what change makes of it, in this whole
	// process. A change that changes anything must come before the first client.
	Scripts func(change func(name, body string) string)
)
