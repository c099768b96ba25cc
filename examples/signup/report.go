package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlq/pawl"
)

// absorb sends the burst and watches the queue until it is empty again.
func (d *demo) absorb(ctx context.Context, url string) error {
	fmt.Printf("\n%d users sign up over %d connections; %d mails at once take %v each.\n",
		d.burst.users, connections, senders, mailTime)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() { sent <- d.burst.send(ctx, url) }()

	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for bursting := true; ; {
		select {
		case err := <-sent:
			if err != nil {
				return err
			}
			bursting = false
			sent = nil
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		stats, err := d.queue.Stats(ctx)
		if err != nil {
			return err
		}
		d.top = max(d.top, stats.Depth())
		d.line(stats)
		if !bursting && stats.Depth() == 0 && stats.Running == 0 {
			return nil
		}
	}
}

func (d *demo) line(stats pawl.Stats) {
	fmt.Printf("%5d ms  answered %6d  waiting %6d  sent %6d\n",
		time.Since(d.start).Milliseconds(), d.burst.progress(), stats.Depth(), stats.Total.Done)
}

// printLeft prints what the next worker would find. The program was stopped, so
// its context is over.
func (d *demo) printLeft() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stats, err := d.queue.Stats(ctx)
	if err != nil {
		fmt.Println("stopped, and cannot say what is left:", err)
		return
	}
	fmt.Printf("\nstopped: %d mails sent, %d on their way, %d wait for the next worker\n", stats.Total.Done, stats.Running, stats.Depth())
}

// report prints what was measured, and checks that nobody was forgotten.
func (d *demo) report(ctx context.Context) error {
	stats, err := d.queue.Stats(ctx)
	if err != nil {
		return err
	}
	// Check walks every key of the queue: it finds nothing unless somebody
	// edited or lost some.
	violations, err := d.queue.Check(ctx)
	if err != nil {
		return err
	}
	mails, repeats := d.mails.perAddress()
	n := stats.Total

	fmt.Println()
	for code, count := range d.burst.answers {
		fmt.Printf("          %-9s  %d with %d %s\n", "answered", count, code, http.StatusText(code))
	}
	p := d.latency.percentiles(50, 99, 100)
	fmt.Printf("          %-9s  p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n", "handler", ms(p[0]), ms(p[1]), ms(p[2]))
	fmt.Printf("          %-9s  %d mails waited at the top\n", "queue", d.top)
	fmt.Printf("          %-9s  enqueued %d, duplicate %d, done %d, failed %d\n", "counted", n.Enqueued, n.Duplicate, n.Done, n.Failed)
	fmt.Printf("          %-9s  to %d users, given twice %d\n", "mails", len(mails), repeats)
	fmt.Printf("          %-9s  %d violations\n\n", "check", len(violations))

	var wrong []error
	if d.burst.answers[http.StatusAccepted] != d.burst.requests() {
		wrong = append(wrong, fmt.Errorf("%d sign-ups were answered %v", d.burst.requests(), d.burst.answers))
	}
	for address, count := range mails {
		if count != 1 {
			wrong = append(wrong, fmt.Errorf("%s has got %d mails", address, count))
		}
	}
	if len(mails) != d.burst.users {
		wrong = append(wrong, fmt.Errorf("%d of %d users have got a mail", len(mails), d.burst.users))
	}
	if stats.Depth() != 0 || stats.Running != 0 || stats.Dead != 0 {
		wrong = append(wrong, fmt.Errorf("jobs are left: %+v", stats))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
