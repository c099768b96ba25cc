package pawl_test

import (
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/pawlq/pawl"
)

// The tables of docs/retries.md with numbers in them. What is printed here is
// held against the page by TestTheTablesOfTheRetriesPageAreComputed.

// row prints a row of a Markdown table.
func row(cells ...any) {
	for _, c := range cells {
		if d, ok := c.(time.Duration); ok {
			c = brief(d)
		}
		fmt.Print("| ", c, " ")
	}
	fmt.Println("|")
}

// brief is d without units that are zero.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// waits is the least and the greatest wait after the n-th failure.
func waits(b pawl.Backoff, n int) (least, most time.Duration) {
	exact := b
	exact.Jitter = pawl.JitterNone
	most = exact.Delay(n)
	least = most / 2
	low, high := most, time.Duration(0)
	for range 1000 {
		d := b.Delay(n)
		low, high = min(low, d), max(high, d)
	}
	// A wrong table would be printed otherwise: the draws fill the range.
	if edge := most / 20; low < least || low > least+edge || high > most || high < most-edge {
		log.Fatalf("after failure %d the waits go from %v to %v, not from %v to %v", n, low, high, least, most)
	}
	return least, most
}

// total is the least and the greatest sum of the waits of so many attempts.
func total(b pawl.Backoff, attempts int) (least, most time.Duration) {
	for n := 1; n < attempts; n++ {
		l, m := waits(b, n)
		least, most = least+l, most+m
	}
	return least, most
}

// printWaits prints a row for each attempt that fails.
func printWaits(b pawl.Backoff, attempts int) {
	for n := 1; n < attempts; n++ {
		least, most := waits(b, n)
		soonest, latest := total(b, n+1)
		row(n, most, brief(least)+" to "+brief(most), soonest, latest)
	}
	row(attempts, "none: dead", "–", "–", "–")
}

// The default policy.
func ExampleBackoff_defaultWaits() {
	printWaits(pawl.DefaultBackoff, 8)
	// Output:
	// | 1 | 5s | 2.5s to 5s | 2.5s | 5s |
	// | 2 | 15s | 7.5s to 15s | 10s | 20s |
	// | 3 | 45s | 22.5s to 45s | 32.5s | 1m5s |
	// | 4 | 2m15s | 1m7.5s to 2m15s | 1m40s | 3m20s |
	// | 5 | 6m45s | 3m22.5s to 6m45s | 5m2.5s | 10m5s |
	// | 6 | 20m15s | 10m7.5s to 20m15s | 15m10s | 30m20s |
	// | 7 | 1h | 30m to 1h | 45m10s | 1h30m20s |
	// | 8 | none: dead | – | – | – |
}

// region retries-kinds

// TakePayment: a customer waits for it, and wants to be asked when it fails.
type TakePayment struct{ Order int }

func (TakePayment) Kind() string { return "payment.take" }
func (TakePayment) JobOptions() []pawl.Option {
	return []pawl.Option{
		pawl.MaxAttempts(10),
		pawl.Backoff{Base: 2 * time.Second, Factor: 2, Max: 5 * time.Minute},
		pawl.Timeout(30 * time.Second),
		pawl.ExpireIn(time.Hour), // later than that nobody expects to be charged
	}
}

// CallWebhook: the other side may be down for a day, and nobody waits.
type CallWebhook struct{ URL string }

func (CallWebhook) Kind() string { return "webhook.call" }
func (CallWebhook) JobOptions() []pawl.Option {
	return []pawl.Option{
		pawl.MaxAttempts(11),
		pawl.Backoff{Steps: []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute,
			30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour}}, // the last one repeats
		pawl.Timeout(10 * time.Second), // a receiver that is slower should answer 202 first
	}
}

// SendMail: late is better than never, for a few hours.
type SendMail struct{ To, Template string }

func (SendMail) Kind() string { return "mail.send" }
func (SendMail) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.MaxAttempts(10), pawl.Timeout(30 * time.Second)} // the default Backoff
}

// BuildExport: a run is long and costly. What fails twice is mostly a bug.
type BuildExport struct{ Table string }

func (BuildExport) Kind() string { return "export.build" }
func (BuildExport) JobOptions() []pawl.Option {
	return []pawl.Option{
		pawl.MaxAttempts(3),
		pawl.Backoff{Base: time.Minute, Factor: 5},
		pawl.Timeout(2 * time.Hour),
	}
}

// endregion

// policyOf reads a kind's options, which are data.
func policyOf(kind pawl.Optioner) (attempts int, b pawl.Backoff, timeout time.Duration) {
	for _, o := range kind.JobOptions() {
		switch o := o.(type) {
		case pawl.MaxAttempts:
			attempts = int(o)
		case pawl.Backoff:
			b = o
		case pawl.Timeout:
			timeout = time.Duration(o)
		}
	}
	return attempts, b, timeout
}

// A policy for something a person waits for.
func ExampleBackoff_paymentWaits() {
	attempts, b, _ := policyOf(TakePayment{})
	printWaits(b, attempts)
	// Output:
	// | 1 | 2s | 1s to 2s | 1s | 2s |
	// | 2 | 4s | 2s to 4s | 3s | 6s |
	// | 3 | 8s | 4s to 8s | 7s | 14s |
	// | 4 | 16s | 8s to 16s | 15s | 30s |
	// | 5 | 32s | 16s to 32s | 31s | 1m2s |
	// | 6 | 1m4s | 32s to 1m4s | 1m3s | 2m6s |
	// | 7 | 2m8s | 1m4s to 2m8s | 2m7s | 4m14s |
	// | 8 | 4m16s | 2m8s to 4m16s | 4m15s | 8m30s |
	// | 9 | 5m | 2m30s to 5m | 6m45s | 13m30s |
	// | 10 | none: dead | – | – | – |
}

// A policy by steps, for another's outage of a day.
func ExampleBackoff_webhookWaits() {
	attempts, b, _ := policyOf(CallWebhook{})
	printWaits(b, attempts)
	// Output:
	// | 1 | 5s | 2.5s to 5s | 2.5s | 5s |
	// | 2 | 1m | 30s to 1m | 32.5s | 1m5s |
	// | 3 | 5m | 2m30s to 5m | 3m2.5s | 6m5s |
	// | 4 | 30m | 15m to 30m | 18m2.5s | 36m5s |
	// | 5 | 2h | 1h to 2h | 1h18m2.5s | 2h36m5s |
	// | 6 | 6h | 3h to 6h | 4h18m2.5s | 8h36m5s |
	// | 7 | 12h | 6h to 12h | 10h18m2.5s | 20h36m5s |
	// | 8 | 12h | 6h to 12h | 16h18m2.5s | 32h36m5s |
	// | 9 | 12h | 6h to 12h | 22h18m2.5s | 44h36m5s |
	// | 10 | 12h | 6h to 12h | 28h18m2.5s | 56h36m5s |
	// | 11 | none: dead | – | – | – |
}

// What a kind's policy comes to.
func ExampleOptioner_budget() {
	for _, kind := range []pawl.Args{TakePayment{}, CallWebhook{}, SendMail{}, BuildExport{}} {
		attempts, b, timeout := policyOf(kind.(pawl.Optioner))
		outlives, dead := total(b, attempts)
		row(kind.Kind(), attempts, outlives, dead, timeout, dead+time.Duration(attempts)*timeout)
	}
	// Output:
	// | payment.take | 10 | 6m45s | 13m30s | 30s | 18m30s |
	// | webhook.call | 11 | 28h18m2.5s | 56h36m5s | 10s | 56h37m55s |
	// | mail.send | 10 | 1h45m10s | 3h30m20s | 30s | 3h35m20s |
	// | export.build | 3 | 3m | 6m | 2h | 6h6m |
}

// How many attempts the default waits need for an outage.
func ExampleMaxAttempts_outage() {
	for _, outage := range []time.Duration{time.Minute, 10 * time.Minute, 45 * time.Minute, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour} {
		for attempts := 1; ; attempts++ {
			if least, most := total(pawl.DefaultBackoff, attempts); least >= outage {
				row(outage, attempts, least, most)
				break
			}
		}
	}
	// Output:
	// | 1m | 5 | 1m40s | 3m20s |
	// | 10m | 7 | 15m10s | 30m20s |
	// | 45m | 8 | 45m10s | 1h30m20s |
	// | 2h | 11 | 2h15m10s | 4h30m20s |
	// | 6h | 19 | 6h15m10s | 12h30m20s |
	// | 24h | 55 | 24h15m10s | 48h30m20s |
}

// region retries-timeout

// timeoutFor is a rule of thumb, from the time that 99 of 100 runs take at most.
func timeoutFor(p99 time.Duration) time.Duration { return max(5*p99, 10*time.Second) }

// endregion

// Timeouts by that rule, and how often one of 10 slots is free if every run
// hangs until its timeout.
func ExampleTimeout_fromP99() {
	const slots = 10
	for _, p99 := range []time.Duration{200 * time.Millisecond, 4 * time.Second, 30 * time.Second, 5 * time.Minute} {
		timeout := timeoutFor(p99)
		row(p99, timeout, timeout/slots)
	}
	row("not known", brief(30*time.Minute)+", the default", 30*time.Minute/slots)
	// Output:
	// | 200ms | 10s | 1s |
	// | 4s | 20s | 2s |
	// | 30s | 2m30s | 15s |
	// | 5m | 25m | 2m30s |
	// | not known | 30m, the default | 3m |
}

// What follows from a visibility timeout.
func ExampleVisibilityTimeout_consequences() {
	for _, v := range []time.Duration{6 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute} {
		beat := v / 3
		row(v, beat, v-beat, v+2*time.Second)
	}
	// Output:
	// | 6s | 2s | 4s | 8s |
	// | 30s | 10s | 20s | 32s |
	// | 2m | 40s | 1m20s | 2m2s |
	// | 10m | 3m20s | 6m40s | 10m2s |
}
