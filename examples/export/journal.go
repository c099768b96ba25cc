package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// journal prints what happens and when. It is a pawl.Hook.
type journal struct {
	start  time.Time
	mu     sync.Mutex
	tables map[pawl.ID]string
}

var (
	_ pawl.OnStarted   = (*journal)(nil)
	_ pawl.OnDone      = (*journal)(nil)
	_ pawl.OnDead      = (*journal)(nil)
	_ pawl.OnCancelled = (*journal)(nil)
)

func newJournal() *journal { return &journal{start: time.Now(), tables: map[pawl.ID]string{}} }

func (j *journal) Started(_ context.Context, e pawl.Event) {
	var args Export
	_ = json.Unmarshal(e.Job.Payload, &args) // the handler would not run if this failed
	j.mu.Lock()
	j.tables[e.Job.ID] = args.Table
	j.mu.Unlock()
	j.line("worker", args.Table, "starts, %d pages", args.Pages)
}

func (j *journal) Done(_ context.Context, e pawl.Event) {
	j.line("worker", j.table(e.Job.ID), "is done")
}

func (j *journal) Dead(_ context.Context, e pawl.DeadEvent) {
	j.line("worker", j.table(e.Job.ID), "is dead, %s: %v", e.Reason, e.Err)
}

func (j *journal) Cancelled(_ context.Context, e pawl.Event) {
	j.line("worker", j.table(e.Job.ID), "has stopped: the job was cancelled")
}

// gone tells of a request whose client has hung up.
func (j *journal) gone(id pawl.ID) {
	j.line("server", j.table(id), "waits no more: the client has gone")
}

func (j *journal) table(id pawl.ID) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tables[id]
}

// line prints one event with the milliseconds since the start.
func (j *journal) line(who, table, format string, args ...any) {
	fmt.Printf("%5d ms  %-6s  %-8s  %s\n", time.Since(j.start).Milliseconds(), who, table, fmt.Sprintf(format, args...))
}
