package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// callTimeout is how long a producer waits for an answer: shorter than some
// faults, so that some calls stay unknown.
const callTimeout = 1500 * time.Millisecond

// produce enqueues the jobs, and has an operator meddle with them meanwhile.
func produce(ctx context.Context, cfg childConfig, client *pawl.Client, out *Writer) {
	o := &operator{name: cfg.Name, slow: cfg.Sample > 0, wide: len(cfg.Queues) > 1, out: out, random: rand.New(rand.NewPCG(cfg.Seed, 1<<32))}
	for _, name := range cfg.Queues {
		o.queues = append(o.queues, client.Queue(name))
	}
	operating, stop := context.WithCancel(ctx)
	var operators, callers sync.WaitGroup
	operators.Go(func() { o.operate(operating) })
	for i := range cfg.Callers {
		n := cfg.Jobs / cfg.Callers
		if i < cfg.Jobs%cfg.Callers {
			n++
		}
		random := rand.New(rand.NewPCG(cfg.Seed, uint64(i)))
		next := time.Now()
		callers.Go(func() {
			for k, made := 0, 0; made < n; {
				drafts := make([]draft, o.batch(random))
				for range drafts {
					// By the clock, so that what an outage held up is caught up with.
					next = next.Add(time.Duration(random.Int64N(2*int64(cfg.Pace)*int64(cfg.Callers) + 1)))
				}
				if wait(ctx, time.Until(next)) != nil {
					return
				}
				q := o.queues[random.IntN(len(o.queues))]
				cfg := cfg
				cfg.safe = cfg.Risky != "" && q.Name() != cfg.Risky
				for j := range drafts {
					drafts[j] = newDraft(random, fmt.Sprintf("%s-%d-%d", cfg.Name, i, k), cfg)
					k++
				}
				made += o.enqueue(ctx, q, drafts)
			}
		})
	}
	callers.Wait()
	_ = wait(ctx, time.Second) // the last deaths are to be redriven too
	stop()
	operators.Wait()
}

// batch is how many jobs the next call enqueues.
func (o *operator) batch(random *rand.Rand) int {
	if o.wide && random.IntN(5) == 0 {
		return 2 + random.IntN(10)
	}
	return 1
}

// enqueue makes one call for the drafts, writes it down before and after, and
// returns how many count as made.
func (o *operator) enqueue(ctx context.Context, q *pawl.Queue, drafts []draft) (made int) {
	items := make([]pawl.Item, len(drafts))
	for i := range drafts {
		d := &drafts[i]
		d.invoke.Queue = q.Name()
		items[i] = pawl.Item{Args: d.args, Options: d.options}
		o.out.Write(d.invoke)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var jobs []pawl.Enqueued
	var err error
	if len(items) == 1 {
		jobs = make([]pawl.Enqueued, 1)
		jobs[0], err = q.Enqueue(ctx, items[0].Args, items[0].Options...)
	} else {
		jobs, err = q.EnqueueMany(ctx, items)
	}
	for i, d := range drafts {
		e := d.answer(jobs[i], err)
		o.out.Write(e)
		if e.makes(!o.wide) {
			made++
		}
		if e.Type == OK && !e.Duplicate {
			o.remember(target{q, jobs[i].ID})
		}
	}
	return made
}

// answer is the event of an enqueue of which the job and the call's error are
// known: a duplicate that was to be rejected is an error to its call, of which
// the other jobs were made.
func (d draft) answer(job pawl.Enqueued, err error) Event {
	e := Event{Op: Enqueue, Ref: d.invoke.Ref, Duplicate: job.Duplicate}
	e.Type, e.Class = classify(err)
	if errors.Is(err, pawl.ErrDuplicate) && !(job.Duplicate && d.rejects) {
		e.Type, e.Class = OK, ""
	}
	if job.ID != (pawl.ID{}) && e.Type == OK {
		e.Job = job.ID.String()
	}
	return e
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
