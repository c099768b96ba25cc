package pawltest

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/testhook"
)

// waitingJob is a job that is ready, delayed or parked, with all that is stored of it.
type waitingJob struct {
	pawl.RawJob
	rec *record.Record
	due time.Duration // from now; 0 if it is ready
}

// waiting are the waiting jobs of a queue, oldest first. Those whose record
// cannot be read are left out: they have no type.
func (e *Env) waiting(verb, queue string) []waitingJob {
	e.t.Helper()
	live, now, err := e.live(context.Background(), queue)
	if err != nil {
		e.t.Fatalf("pawltest: %s: %v", verb, err)
	}
	var jobs []waitingJob
	for text, body := range live {
		id, ok := jobid.FromText(text)
		rec, err := record.Decode([]byte(body))
		if !ok || err != nil {
			continue
		}
		w := waitingJob{RawJob: testhook.Job(e.Client, queue, id, rec).(pawl.RawJob), rec: rec}
		w.Attempt = rec.Attempts
		if rec.Due > 0 {
			w.due = max(0, w.DueAt.Sub(now))
		}
		jobs = append(jobs, w)
	}
	slices.SortFunc(jobs, func(a, b waitingJob) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return jobs
}

// live reads the records of the jobs that do not run, in one moment: a job lies
// in a stream, under "r", or in a hash, and runs if it has a lease that holds
// (docs/storage.md).
func (e *Env) live(ctx context.Context, queue string) (records map[string]string, now time.Time, err error) {
	if _, err := e.Client.Queue(queue).Stats(ctx); err != nil { // above all, a bad name
		return nil, now, err
	}
	prefix := e.namespace + ":{" + queue + "}:"
	tx := e.Redis.TxPipeline()
	at := tx.Time(ctx)
	stream := tx.XRange(ctx, prefix+"jobs", "-", "+")
	held := tx.HGetAll(ctx, prefix+"held")
	leases := tx.ZRangeWithScores(ctx, prefix+"leases", 0, -1)
	if _, err := tx.Exec(ctx); err != nil {
		return nil, now, err
	}
	records = held.Val()
	for _, entry := range stream.Val() {
		records[entry.ID], _ = entry.Values["r"].(string)
	}
	now = at.Val()
	for _, lease := range leases.Val() {
		if id, ok := lease.Member.(string); ok && int64(lease.Score) > now.UnixMilli() {
			delete(records, id)
		}
	}
	return records, now, nil
}

// Jobs are the waiting jobs of one type, decoded, oldest first: those that are
// ready, delayed or parked. Attempt is how often they have failed so
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
