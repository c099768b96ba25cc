package pawltest

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/testhook"
)

// waitingJob is a job that is ready or delayed, with all that is stored of it.
type waitingJob struct {
	pawl.JobInfo
	rec *record.Record
}

// waiting are the waiting jobs of a queue, oldest first. Those whose record
// cannot be read are left out: they have no type.
func (e *Env) waiting(verb, queue string) []waitingJob {
	e.t.Helper()
	ctx := context.Background()
	q := e.Client.Queue(queue)
	if _, err := q.Stats(ctx); err != nil { // above all, a bad name
		e.t.Fatalf("pawltest: %s: %v", verb, err)
	}
	// docs/storage.md: a live job lies in a stream, under "r", or in a hash.
	prefix := e.namespace + ":{" + queue + "}:"
	entries, err := e.Redis.XRange(ctx, prefix+"jobs", "-", "+").Result()
	records, err2 := e.Redis.HGetAll(ctx, prefix+"held").Result()
	if err := errors.Join(err, err2); err != nil {
		e.t.Fatalf("pawltest: %s: %v", verb, err)
	}
	for _, entry := range entries {
		records[entry.ID], _ = entry.Values["r"].(string)
	}
	var jobs []waitingJob
	for text, body := range records {
		id, ok := jobid.FromText(text)
		rec, err := record.Decode([]byte(body))
		if !ok || err != nil {
			continue
		}
		info, err := q.Get(ctx, id)
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			e.t.Fatalf("pawltest: %s: %v", verb, err)
		}
		if info.State == pawl.StateReady || info.State == pawl.StateDelayed {
			jobs = append(jobs, waitingJob{info, rec})
		}
	}
	slices.SortFunc(jobs, func(a, b waitingJob) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return jobs
}

// Jobs are the waiting jobs of one type, decoded, oldest first: those that are
// ready and those that are delayed. Attempt is how often they have failed so
// far. If T is pawl.Args, they are the jobs of all types, with nil Args.
func Jobs[T pawl.Args](e *Env, queue string) []pawl.Job[T] {
	e.t.Helper()
	var jobs []pawl.Job[T]
	known := kindsOf[T]()
	for _, w := range e.waiting("Jobs", queue) {
		if known != nil && !slices.Contains(known, w.Kind) {
			continue
		}
		job := pawl.Job[T]{RawJob: w.RawJob}
		if known != nil {
			if err := e.codec().Decode(w.Kind, w.Payload, &job.Args); err != nil {
				e.t.Fatalf("pawltest: Jobs: %s does not decode as %T: %v", describe(w), job.Args, err)
			}
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// RequireNone fails if a job of the type waits; if T is pawl.Args, if any does.
func RequireNone[T pawl.Args](e *Env, queue string) {
	e.t.Helper()
	known := kindsOf[T]()
	found := slices.DeleteFunc(e.waiting("RequireNone", queue), func(w waitingJob) bool {
		return known != nil && !slices.Contains(known, w.Kind)
	})
	if len(found) > 0 {
		e.t.Fatalf("pawltest: RequireNone: in queue %q there wait\n%s", queue, list(found))
	}
}

func (e *Env) codec() pawl.Codec { return testhook.Codec(e.Client).(pawl.Codec) }

// kindsOf are the kinds that a handler of T takes; nil, all, if T is an interface.
func kindsOf[T pawl.Args]() []string {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		return nil
	}
	var args T
	if t.Kind() == reflect.Pointer {
		args = reflect.New(t.Elem()).Interface().(T)
	}
	return kinds(args)
}

func kinds(args pawl.Args) []string {
	names := []string{args.Kind()}
	if a, ok := args.(pawl.KindAliaser); ok {
		names = append(names, a.KindAliases()...)
	}
	return names
}
