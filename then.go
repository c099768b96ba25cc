package pawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// Then enqueues a second job in the same queue once this one is done, in the script
// that acknowledges it: one is never there without the other. If it is skipped,
// discarded, cancelled or purged, nothing follows. If it dies, its follow-ups stay with it:
// a redrive runs them after its success.
//
// The arguments are encoded, and Config.Inject is asked, when this job is enqueued. A
// Delay counts from the acknowledgement, by the server's clock. Unique applies then too: under a
// key that is held nothing is added, and the duplicate is counted, also with
// RejectDuplicate, as there is nobody to tell. The follow-up has its own headers alone.
//
// It may be given 16 times; all follow at once. The options may have Then themselves, 16
// levels deep. The payloads of all these jobs come to at most Config.MaxPayload. More
// is ErrInvalid or ErrTooLarge; so is a type whose JobOptions name it as its own
// follow-up. To decide in the handler what follows, use RawJob.Then.
type Then struct {
	Args    Args
	Options []Option
}

const (
	maxThen  = 16 // of one job
	maxDepth = 16 // of a chain

	// followerBytes is what a follow-up counts beside its payload: a chain of empty
	// ones must end, too.
	followerBytes = 16
)

func (t Then) apply(s *settings) error {
	if len(s.then) == maxThen {
		return invalidf("Then is given more than %d times: give the others to one of these", maxThen)
	}
	s.then = append(s.then, t)
	return nil
}

// follower is a follow-up of a draft.
type follower struct {
	raw Raw
	settings
}

// chain is what is left of the bounds of a job and all that follows it.
type chain struct {
	bytes int
	depth int // of the job that is looked at
}

// follow drafts what follows a job. The first thing that is wrong ends it: a type that
// follows itself twice would else be looked at 2^16 times.
func (q *queueState) follow(ctx context.Context, raw Raw, s *settings, c *chain) error {
	if c.bytes -= len(raw.Payload); c.depth > 0 {
		c.bytes -= followerBytes
	}
	switch {
	case c.bytes < 0:
		return fmt.Errorf("%w: a job of kind %q and what follows have more than %d bytes: store the things and enqueue their keys",
			ErrTooLarge, raw.Name, q.client.max)
	case len(s.then) > 0 && c.depth == maxDepth:
		return invalidf("Then is nested more than %d deep, kind %q at last: does a type follow itself? Use RawJob.Then for work without an end", maxDepth, raw.Name)
	}
	c.depth++
	defer func() { c.depth-- }()
	for i, t := range s.then {
		next, own, err := q.draftIn(ctx, t.Args, t.Options, c)
		if err != nil {
			return fmt.Errorf("Then %d of %d: %w", i+1, len(s.then), err)
		}
		s.chain = append(s.chain, follower{next, own})
	}
	return nil
}

// stored is how follow-ups lie in the record of the job that they follow.
func (q *queueState) stored(chain []follower) (list []record.Then) {
	for _, f := range chain {
		it := q.item(f.raw, f.settings)
		list = append(list, record.Then{How: it.wait(), Record: it.record})
	}
	return list
}

// wait is when an item may run, as it is stored.
func (it *item) wait() string {
	switch {
	case it.when == 'a':
		return "a " + strconv.FormatInt(it.ms, 10)
	case it.ms > 0:
		return "d " + strconv.FormatInt(it.ms, 10)
	}
	return ""
}

// follower makes an item of a stored follow-up. What another producer wrote, and cannot
// be read, is enqueued as it is, and buried by the worker that finds it.
func (q *queueState) follower(t record.Then) *item {
	it := &item{low: jobid.NewLow(), record: t.Record, queue: q.name}
	rec, err := record.Decode(t.Record)
	if err != nil {
		return it
	}
	it.kind, it.priority = rec.Kind, rec.Priority
	when, text, _ := strings.Cut(t.How, " ")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms >= 1<<48 { // six bytes of a head
		ms, when = 0, ""
	}
	switch {
	case !rec.LongHead: // without a place for its time it runs at once
	case when == "a":
		it.when, it.ms = 'a', ms
	case when == "d" && ms > 0:
		it.when, it.ms = 'd', ms
	case rec.Priority > 0:
		it.when = 'd'
	}
	if u := rec.Unique; u != nil {
		it.unique = &Unique{Key: u.Key, Until: UniqueUntil(u.Until), For: min(max(u.For, 0), maxWait), OnDuplicate: OnDuplicate(u.OnDuplicate)}
		if !rec.LongHead && it.replaces() {
			it.unique.OnDuplicate = KeepExisting
		}
	}
	return it
}

// followers are what follows a run that was done: of its record, then of its handler.
func (r *run) followers() (list []*item) {
	for _, t := range r.rec.Then {
		list = append(list, r.feed.q.follower(t))
	}
	if a := r.said.Load(); a != nil {
		a.staged.mu.Lock()
		defer a.staged.mu.Unlock()
		list = append(list, a.staged.then...)
	}
	return list
}

// addTo puts the follow-ups of an outcome into its call: how many, then three words for
// each. Their unique keys lie behind the fixed ones, as those of the jobs that end do.
func (o *outcome) addTo(c *call, k *keyspace, fixed int) {
	c.args = append(c.args, len(o.then))
	for _, it := range o.then {
		index := 0
		if it.unique != nil {
			c.keys = append(c.keys, k.unique(it.unique.Key))
			index = len(c.keys) - fixed
		}
		c.args = append(c.args, strconv.FormatUint(it.low, 10), it.record, it.how(index))
	}
}

// items and size are what an outcome counts in a call.
func (o *outcome) items() int { return 1 + len(o.then) }

func (o *outcome) size() int {
	n := len(o.record)
	for _, it := range o.then {
		n += it.size()
	}
	return n
}

// tellAdded has the hooks told of the follow-ups that a call has enqueued; text is what
// its answer says of them. They have been counted in any case.
func (f *feed) tellAdded(p *pendingCall, marks, text string) (news []func()) {
	all := &group{}
	for i, out := range p.outs {
		if marks[i] == 'k' {
			all.items = append(all.items, out.then...)
		}
	}
	if len(all.items) == 0 {
		return nil
	}
	if err := readAdded("finish", text, []*group{all}); err != nil {
		f.worker.client.log.Error("pawl: a script's answer makes no sense", "queue", f.q.name, "script", "finish", "error", err)
		return nil
	}
	for i, out := range p.outs {
		if marks[i] != 'k' {
			continue
		}
		for _, it := range out.then {
			event := EnqueuedEvent{Enqueued: it.result, Kind: it.kind, Took: time.Since(p.call.first), Err: it.rejected()}
			news = append(news, func() { f.worker.client.hooks.enqueued(context.WithoutCancel(out.run.ctx), event) })
		}
	}
	return news
}
