package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is certain is less: a pause that was ended early, a worker that was starved.
func TestWhatMayBeRightPasses(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(p *past){
		"a pause that was resumed": func(p *past) {
			p.pause(1700, "p1", 300)
			p.add(1750, "producer", Resume, Event{Type: Invoke, Ref: "r1", Queue: "q"})
			p.run(p.enqueue(1800, "f", Event{}), "f", 1810, 1820, "w1", 1, "done", Done, Event{})
			p.find(id(1800), Start).Queue = "q"
		},
		"a key is freed by a lease that a killed worker gave back": func(p *past) {
			f := p.enqueue(1700, "f", Event{Key: "s", Started: true})
			p.add(1730, "runner", Fault, Event{Class: "kill", Ref: "w4"})
			g := p.enqueue(1750, "g", Event{Key: "s", Started: true})
			p.run(f, "f", 1800, 1810, "w1", 1, "done", Done, Event{Due: 1700})
			p.run(g, "g", 1805, 1810, "w1", 1, "done", Done, Event{Due: 1750})
		},
		"a pause of another queue": func(p *past) {
			p.pause(1700, "p1", 300)
			p.run(p.enqueue(1800, "f", Event{}), "f", 1810, 1820, "w1", 1, "done", Done, Event{})
		},
		"a lease is lost by one that was starved": func(p *past) {
			f := p.enqueue(30_000, "f", Event{})
			p.add(30_100, "w1", Fault, Event{Class: Starved, Delay: 900})
			p.run(f, "f", 30_010, 31_900, "w1", 1, "done", "", Event{})
			p.add(31_901, "w1", Lost, Event{Job: f, Run: (epoch + 30_010) * 1000})
			p.run(f, "f", 31_020, 31_940, "w3", 1, "done", Done, Event{Crashes: 1, Due: 30_000})
		},
		"a lease is lost by one that was frozen, and its job is buried for that and redriven": func(p *past) {
			f := p.enqueue(30_000, "f", Event{})
			p.add(30_020, "runner", Fault, Event{Class: "stop", Ref: "w1", Delay: 4000})
			p.add(30_010, "w1", Start, Event{Ref: "f", Job: f, Run: (epoch + 30_010) * 1000, Attempt: 1, MaxAttempts: 1, Due: epoch + 30_000, Lease: 1000})
			p.add(31_020, "w3", Crashed, Event{Job: f, Run: (epoch + 31_020) * 1000, Attempt: 1, MaxAttempts: 1, Crashes: 1})
			p.add(31_021, "w3", Dead, Event{Job: f, Run: (epoch + 31_020) * 1000, Attempt: 1, MaxAttempts: 1, Crashes: 1})
			p.run(f, "f", 31_100, 31_110, "w2", 1, "done", Done, Event{Redrives: 1, Due: 31_090})
			p.add(34_025, "w1", Lost, Event{Job: f, Run: (epoch + 30_010) * 1000})
		},
		"a job waits for its idempotency key once more, and who put it back was killed": func(p *past) {
			f := p.enqueue(1700, "f", Event{Idem: "i", Keep: 300})
			p.run(f, "f", 1710, 1720, "w1", 1, "retry", Retry, Event{Due: 1700, Delay: 60})
			p.add(1780, "runner", Fault, Event{Class: "kill", Ref: "w4"})
			p.run(f, "f", 2900, 2910, "w1", 2, "done", Done, Event{Due: 2890})
		},
		"nothing waits after the faults": func(p *past) {
			p.add(1700, "runner", Fault, Event{Class: Healed})
			p.run(p.enqueue(9000, "f", Event{}), "f", 9010, 9020, "w1", 1, "done", Done, Event{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := clean()
			plant(p)
			for _, v := range Check(p.events, p.state) {
				require.Equal(t, Conservation, v.Invariant, v) // the counters are not told
			}
		})
	}
}
