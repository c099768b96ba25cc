// Package chaos runs producers, workers and an operator as processes of their
// own against a redis-server behind a faulty proxy, breaks everything for a
// while by a schedule that a seed gives, and checks what they wrote down and
// what is left in Redis against the invariants that pawl promises. It is for
// tests only.
package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Type is how far a call has come. A call that never got beyond Invoke, because
// its process was killed, is as unknown as one that was answered Unknown.
type Type string

// The types of an event.
const (
	Invoke  Type = "invoke"
	OK      Type = "ok"
	Fail    Type = "fail" // and nothing was done
	Unknown Type = "unknown"
)

// Op is what happened.
type Op string

// The ops of a history. Those from Done to Release end a run, and are written
// down once Redis has stored the outcome.
const (
	Enqueue Op = "enqueue"
	Start   Op = "start"
	Effect  Op = "effect" // the handler is about to return
	Done    Op = "done"
	Skip    Op = "skip" // a job was done under its idempotency key
	Discard Op = "discard"
	Cancel  Op = "cancel" // also an operator's call
	Retry   Op = "retry"
	Snooze  Op = "snooze"
	Dead    Op = "dead"
	Release Op = "release"
	Crashed Op = "crashed" // a lease that ran out was taken over
	Lost    Op = "lost"
	Redrive Op = "redrive"
	Purge   Op = "purge"
	RunNow  Op = "runnow"
	Pause   Op = "pause"  // for Delay
	Resume  Op = "resume" // before its end
	Fault   Op = "fault"  // Class says which
)

// Healed is the class of the fault that is none: the last one is over.
const Healed = "healed"

// Event is a line of a history. At is stamped before the line is written, so
// what the line tells of has happened by then for certain.
type Event struct {
	At      int64  `json:"at"` // ms, by the clock of the process, which on one machine is the server's too
	Process string `json:"process"`
	Type    Type   `json:"type"`
	Op      Op     `json:"op"`
	Class   string `json:"class,omitempty"` // of the error, of what a handler returns, of a fault
	Ref     string `json:"ref,omitempty"`   // the caller's own name for a call; an enqueue's travels in the payload
	Job     string `json:"job,omitempty"`
	Queue   string `json:"queue,omitempty"`

	Run         int64 `json:"run,omitempty"` // the fencing token: us of the lease, by the server's clock
	Attempt     int   `json:"attempt,omitempty"`
	MaxAttempts int   `json:"max_attempts,omitempty"`
	Crashes     int   `json:"crashes,omitempty"`
	Redrives    int   `json:"redrives,omitempty"`
	Due         int64 `json:"due,omitempty"`   // ms, by the server's clock
	Lease       int64 `json:"lease,omitempty"` // ms: the visibility timeout

	Cause string `json:"cause,omitempty"` // why the handler's context has ended, if it has
	Delay int64  `json:"delay,omitempty"` // ms: of an enqueue, a retry, a snooze; how long a fault lasts
	Least int64  `json:"least,omitempty"` // ms: the bounds that an effect allows for the delay that follows it
	Most  int64  `json:"most,omitempty"`

	Key       string `json:"key,omitempty"`    // unique key of an enqueue
	Window    int64  `json:"window,omitempty"` // ms, of the key
	Idem      string `json:"idem,omitempty"`   // idempotency key of an enqueue
	Keep      int64  `json:"keep,omitempty"`   // ms, of that one's window
	Started   bool   `json:"started,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"` // Job is the holder
	Scrap     bool   `json:"scrap,omitempty"`     // the job may be purged
	Count     int64  `json:"count,omitempty"`     // of a purge, or of a redrive of all
}

// ends tells the ops that end a run.
func (o Op) ends() bool {
	return slices.Contains([]Op{Done, Skip, Discard, Cancel, Retry, Snooze, Dead, Release}, o)
}

// over tells the ops after which a job is gone for good.
func (o Op) over() bool { return o == Done || o == Skip || o == Discard || o == Cancel }

// key is the unique key of an enqueue, which is its queue's alone.
func (e Event) key() string { return e.Queue + " " + e.Key }

// makes tells the answer of an enqueue that counts among the jobs of a run: one
// that made a job, or any.
func (e Event) makes(any bool) bool {
	return e.Op == Enqueue && e.Type != Invoke && (any || e.Type == OK && !e.Duplicate)
}

// Writer appends the events of one process to its file. Each line is one write
// to a file opened with O_APPEND: a kill -9 tears the last line at most, since
// what was written is the kernel's.
type Writer struct {
	process string
	mu      sync.Mutex
	file    *os.File
}

const suffix = ".jsonl"

// NewWriter opens the history of a process. A process that is started again
// takes a new name, so that a torn line is always a file's last.
func NewWriter(dir, process string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, process+suffix), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{process: process, file: f}, nil
}

// Write appends an event, and stamps it if it has no time. A history with a hole
// proves nothing, so an error panics.
func (w *Writer) Write(e Event) {
	if e.At == 0 {
		e.At = time.Now().UnixMilli()
	}
	e.Process = w.process
	line, err := json.Marshal(e)
	if err == nil {
		w.mu.Lock()
		_, err = w.file.Write(append(line, '\n'))
		w.mu.Unlock()
	}
	if err != nil {
		panic(fmt.Sprintf("chaos: write history: %v", err))
	}
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Read merges the histories of a folder, in the order of their times, and those
// of one process as they were written.
func Read(dir string) ([]Event, error) { return read(dir, "*") }

func read(dir, processes string) ([]Event, error) {
	paths, err := filepath.Glob(filepath.Join(dir, processes+suffix))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		events, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, events...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all, nil
}

// parse leaves out a last line that is not whole. Any other is an error.
func parse(text []byte) (events []Event, err error) {
	for n := 1; len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		var e Event
		err := json.Unmarshal(line, &e)
		switch {
		case !whole:
			return events, nil
		case err == nil && e.Op == "":
			err = errors.New("no op")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		events, text = append(events, e), rest
	}
	return events, nil
}

// String is the line of the event, but for what a violation says already.
func (e Event) String() string {
	line, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(line)
}
