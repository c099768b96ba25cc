package pawltest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/testhook"
)

// RequireEnqueued fails unless exactly one waiting job equals args; each
// option must equal the job's own. Options are data, so they compare.
//
//	pawltest.RequireEnqueued(env, "emails", Welcome{UserID: 42}, pawl.Delay(time.Hour))
//
// Arguments are compared as a handler would get them: once encoded and decoded.
// Options that are not given are not compared. What Handle, the type or the
// worker says of how a job runs is not the job's own: it is read where it runs.
func RequireEnqueued[T pawl.Args](e *Env, queue string, args T, opts ...pawl.Option) {
	e.t.Helper()
	want := e.want("RequireEnqueued", queue, args, opts)
	waiting := e.waiting("RequireEnqueued", queue)
	var found []waitingJob
	for _, w := range waiting {
		if want.equals(w.Kind, w.Payload) {
			found = append(found, w)
		}
	}
	switch len(found) {
	case 0:
		e.t.Fatalf("pawltest: RequireEnqueued: no job in queue %q equals\n\t%s\n%s", queue, want, e.instead(queue, waiting))
	case 1:
		if differ := differences(opts, want.rec, found[0]); len(differ) > 0 {
			e.t.Fatalf("pawltest: RequireEnqueued: the job in queue %q that equals\n\t%s\nhas other options:\n\t%s",
				queue, want, strings.Join(differ, "\n\t"))
		}
	default:
		e.t.Fatalf("pawltest: RequireEnqueued: %d jobs in queue %q, not one, equal\n\t%s\nthey are\n%s",
			len(found), queue, want, list(found))
	}
}

// RequireDead fails unless exactly one dead job equals args; it is returned.
// Arguments are compared as by RequireEnqueued. One that could not be decoded
// equals nothing: find it by Report.Dead, or by pawl.DeadLetters.List.
func RequireDead[T pawl.Args](e *Env, queue string, args T) pawl.DeadJob {
	e.t.Helper()
	want := e.want("RequireDead", queue, args, nil)
	var found []pawl.DeadJob
	var dead []string
	for job, err := range e.Client.Queue(queue).Dead().List(context.Background(), pawl.DeadFilter{}) {
		if err != nil {
			e.t.Fatalf("pawltest: RequireDead: %v", err)
		}
		if want.equals(job.Kind, job.Payload) {
			found = append(found, job)
		}
		dead = append(dead, fmt.Sprintf("\t%s %s, %s: %s", job.Kind, text(job.Payload), job.Reason, job.Error))
	}
	if len(found) == 1 {
		return found[0]
	}
	there := "no job is dead there; " + e.instead(queue, e.waiting("RequireDead", queue))
	if len(dead) > 0 {
		there = "dead there are\n" + strings.Join(dead, "\n")
	}
	e.t.Fatalf("pawltest: RequireDead: %d dead jobs in queue %q, not one, equal\n\t%s\n%s", len(found), queue, want, there)
	return pawl.DeadJob{}
}

// wanted is what a job is compared with.
type wanted struct {
	codec pawl.Codec
	kinds []string
	rec   *record.Record // as it would be stored
	value any            // as a handler would get it
}

func (e *Env) want(verb, queue string, args pawl.Args, opts []pawl.Option) wanted {
	e.t.Helper()
	body, value, err := testhook.Encode(e.Client, queue, args, opts)
	if err != nil {
		e.t.Fatalf("pawltest: %s: %v", verb, err)
	}
	w := wanted{codec: e.codec(), kinds: kinds(args)}
	if w.rec, err = record.Decode(body); err == nil {
		w.value, err = w.decode(w.rec.Kind, w.rec.Payload, value)
	}
	if err != nil {
		e.t.Fatalf("pawltest: %s: what %T encodes to does not decode: %v", verb, args, err)
	}
	return w
}

func (w wanted) equals(kind string, payload []byte) bool {
	if !slices.Contains(w.kinds, kind) {
		return false
	}
	got, err := w.decode(kind, payload, w.value)
	return err == nil && reflect.DeepEqual(w.value, got)
}

// decode makes a value of the type of like.
func (w wanted) decode(kind string, payload []byte, like any) (any, error) {
	t := reflect.TypeFor[any]()
	if like != nil {
		t = reflect.TypeOf(like)
	}
	into := reflect.New(t)
	err := w.codec.Decode(kind, payload, into.Interface())
	return into.Elem().Interface(), err
}

func (w wanted) String() string { return w.rec.Kind + " " + text(w.rec.Payload) }
