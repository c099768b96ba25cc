package pawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/pawlq/pawl/internal/record"
)

const (
	progressEvery   = time.Second // between two values of one run that are sent
	maxProgressNote = 1 << 10     // bytes
)

// Progress stores how far the run is: percent, from 0 to 100 and not a fraction, and a
// note, which is cut at 1 KiB of UTF-8. Get and List show it while the job runs, and the
// post-mortem if it dies of this run, a crash of the worker included; with every
// other end of the run it is gone.
//
// Call it as often as you like: the first value is sent at once, and waited for;
// of those that come within a second of one that was sent the newest is kept, nil
// returned, and that one sent when the second is over. A value like the last is not
// sent. Nothing waits for a Redis that does not answer: the call returns nil after a
// second at most, and the newest value is sent when Redis does.
//
// It is fenced. Errors: ErrLeaseLost, and nothing was stored: stop; ErrInvalid for
// another percentage; ErrState once the handler has returned; ctx's, if that
// ended before the answer came; Redis's own if it refused the call for good. Of a
// literal, a JobInfo or a DeadJob it stores nothing: nil, or ErrInvalid.
func (j *RawJob) Progress(ctx context.Context, percent float64, note string) error {
	if math.IsNaN(percent) || percent < 0 || percent > 100 {
		return fmt.Errorf("pawl: progress: %w", invalidf("a progress of %v percent: give 0 to 100", percent))
	}
	if j.run == nil {
		return nil
	}
	v := remark{record.Progress{Percent: math.Abs(percent), Note: noteText(note)}, true} // a zero has no sign
	if err := j.run.aside().progress.tell(ctx, v); err != nil {
		return fmt.Errorf("pawl: progress %s: %w", j.Queue, err)
	}
	return nil
}

// noteText is the note as it can be stored.
func noteText(note string) string {
	if n := maxProgressNote; len(note) > n {
		for range utf8.UTFMax - 1 {
			if !utf8.RuneStart(note[n]) {
				n--
			}
		}
		note = note[:n]
	}
	return strings.ToValidUTF8(note, "?")
}

// remark is a progress, or none.
type remark struct {
	record.Progress
	some bool
}

// Bars divide the parts of a run entry. No note has this byte: it is UTF-8.
const noBar = "\xff"

// text is what stands in a run entry.
func (v remark) text() string {
	return " " + strconv.FormatFloat(v.Percent, 'g', -1, 64) + " " + strings.ReplaceAll(v.Note, "|", noBar)
}

// readProgress reads that, without the space that it begins with.
func readProgress(text string) remark {
	number, note, ok := strings.Cut(text, " ")
	percent, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(percent) || percent < 0 || percent > 100 {
		return remark{}
	}
	return remark{record.Progress{Percent: percent, Note: strings.ReplaceAll(note, noBar, "|")}, true}
}

// record is what a post-mortem keeps.
func (v remark) record() *record.Progress {
	if !v.some {
		return nil
	}
	return &v.Progress
}

// progress is how far a run is: what it said last, and what Redis has of it. A timer is
// all that it has going.
type progress struct {
	run  *run
	lost atomic.Bool // the lease is

	mu     sync.Mutex
	said   remark     // of this run, or, until it says something, of the one before
	stored remark     // as far as is known
	sent   time.Time  // when a value last went out
	busy   bool       // one is on its way, or the timer runs
	answer chan error // of the call that waits for the one on its way; nil if none does
	timer  *time.Timer
	over   bool // the handler has returned
}

// lastProgress is what the run, or one before it, said.
func (r *run) lastProgress() remark {
	a := r.said.Load()
	if a == nil {
		return r.before
	}
	a.progress.mu.Lock()
	defer a.progress.mu.Unlock()
	return a.progress.said
}

// tell takes a value, and waits for the answer if it is sent at once.
func (p *progress) tell(ctx context.Context, v remark) error {
	if p.lost.Load() {
		return ErrLeaseLost
	}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return fmt.Errorf("%w: the handler has returned", ErrState)
	}
	p.said = v
	if p.busy || p.said == p.stored {
		p.mu.Unlock()
		return nil
	}
	p.busy = true
	if wait := progressEvery - time.Since(p.sent); !p.sent.IsZero() && wait > 0 {
		p.timer = time.AfterFunc(wait, p.due)
		p.mu.Unlock()
		return nil
	}
	answer := make(chan error, 1)
	p.answer = answer
	p.mu.Unlock()
	if !p.run.feed.courier.carry(p) {
		p.strand()
		return ErrLeaseLost
	}
	patience := time.NewTimer(progressEvery)
	defer patience.Stop()
	select {
	case err := <-answer:
		return err
	case <-patience.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// due sends what has come since the last value went out.
func (p *progress) due() {
	p.mu.Lock()
	p.busy = !p.over && p.said != p.stored
	busy := p.busy
	p.mu.Unlock()
	if busy && !p.run.feed.courier.carry(p) {
		p.strand()
	}
}

// strand is told that nothing is carried any more: the worker has ended, and renews the
// lease no more. The handler, which goes on all the same, is to hear of it.
func (p *progress) strand() {
	p.lost.Store(true)
	p.mu.Lock()
	answer := p.answer
	p.answer = nil
	p.mu.Unlock()
	if answer != nil {
		answer <- ErrLeaseLost
	}
}

// leave is the value that goes out now.
func (p *progress) leave() remark {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = time.Now()
	return p.said
}

// landed takes the answer for a value. One that was not stored, and what has come
// since, goes out when the second is over.
func (p *progress) landed(v remark, stored bool, err error) {
	p.mu.Lock()
	p.stored = remark{} // without an answer nobody knows what Redis has
	if stored {
		p.stored = v
	}
	p.busy = !p.over && !errors.Is(err, ErrLeaseLost) && p.said != p.stored
	if p.busy {
		p.timer = time.AfterFunc(time.Until(p.sent.Add(progressEvery)), p.due)
	}
	answer := p.answer
	p.answer = nil
	p.mu.Unlock()
	if answer != nil {
		answer <- err
	}
}

// end is told once the handler has returned: what was not sent is not needed.
func (p *progress) end() {
	p.mu.Lock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
}
