package main

import (
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
)

// tally is what a round came to.
type tally struct {
	stats      pawl.Stats
	violations []pawl.Violation

	orders, again, late            int
	kills, afterCharge, afterEntry int
	refused, unsure                int
	repeats, entriesSkipped        int
	charges, entries               verdict
	cents, charged, balance        int64 // of the orders, by the API, in the ledger
}

// verdict is how many orders had an effect how often.
type verdict struct {
	once, more, never int
	moreSentOnce      int // of more, those that the shop had sent once
	unasked           int // effects of orders that were never sent
}

// judge takes how often each order was sent, and how often it had the effect.
func judge(sent, times map[int]int) (v verdict) {
	for order, tries := range sent {
		switch n := times[order]; {
		case n == 0:
			v.never++
		case n == 1:
			v.once++
		default:
			v.more++
			if tries == 1 {
				v.moreSentOnce++
			}
		}
	}
	for order := range times {
		if sent[order] == 0 {
			v.unasked++
		}
	}
	return v
}

func (v verdict) wrong(what string) error {
	if v.more == 0 && v.never == 0 && v.unasked == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d orders more than once, %d not at all, %d that nobody placed", what, v.more, v.never, v.unasked)
}

// wrong is nil if every order was charged once and booked once.
func (t tally) wrong() error {
	wrong := []error{t.charges.wrong("charged"), t.entries.wrong("booked")}
	if t.charged != t.cents || t.balance != t.cents {
		wrong = append(wrong, fmt.Errorf("orders of %s were charged with %s and booked with %s", money(t.cents), money(t.charged), money(t.balance)))
	}
	if t.stats.Depth() != 0 || t.stats.Running != 0 || t.stats.Dead != 0 {
		wrong = append(wrong, fmt.Errorf("jobs are left: %+v", t.stats))
	}
	for _, v := range t.violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}

// printTallies prints two rounds side by side.
func printTallies(guarded, bare tally) {
	row := func(what string, of func(t tally) any) {
		fmt.Printf("%-58s %11v %11v\n", what, of(guarded), of(bare))
	}
	fmt.Printf("\n%-58s %11s %11s\n", "What happened", "with guards", "without")
	row("  orders", func(t tally) any { return t.orders })
	row("  sent again at once", func(t tally) any { return t.again })
	row(fmt.Sprintf("  sent again later than the %v that Unique keeps a key", window), func(t tally) any { return t.late })
	row("  worker processes killed", func(t tally) any { return t.kills })
	row("    their jobs between charge and ledger entry", func(t tally) any { return t.afterCharge })
	row("    their jobs between ledger entry and end of the job", func(t tally) any { return t.afterEntry })
	row("  API: 503, and nothing charged", func(t tally) any { return t.refused })
	row("  API: 500 or no answer, and it was charged", func(t tally) any { return t.unsure })

	fmt.Println("What each guard has stopped")
	row("  at the door, second jobs: Unique", func(t tally) any { return t.stats.Total.Duplicate })
	row("  in the worker, second jobs that came late: Idempotency", func(t tally) any { return t.stats.Total.Skipped })
	row("  in the API, second charges: job.IdempotencyKey", func(t tally) any { return t.repeats })
	row("  in the ledger, second entries: pawlsql.Inbox", func(t tally) any { return t.entriesSkipped })

	fmt.Println("What came of it")
	row("  charged once", func(t tally) any { return t.charges.once })
	row("  charged more than once", func(t tally) any { return t.charges.more })
	row("    though the shop had sent them once", func(t tally) any { return t.charges.moreSentOnce })
	row("  never charged", func(t tally) any { return t.charges.never })
	row("  booked once", func(t tally) any { return t.entries.once })
	row("  booked more than once", func(t tally) any { return t.entries.more })
	row("    though the shop had sent them once", func(t tally) any { return t.entries.moreSentOnce })
	row("  never booked", func(t tally) any { return t.entries.never })
	row("  worth of the orders", func(t tally) any { return money(t.cents) })
	row("  charged in excess", func(t tally) any { return money(t.charged - t.cents) })
	row("  balance in excess", func(t tally) any { return money(t.balance - t.cents) })
}

func money(cents int64) string { return fmt.Sprintf("%.2f", float64(cents)/100) }
