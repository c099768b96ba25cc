package pawlprom

import "github.com/pawlq/pawl"

// events are the counters that Redis keeps of each queue, by the value of the label.
var events = []struct {
	name  string
	count func(*pawl.Counters) int64
}{
	{"enqueued", func(c *pawl.Counters) int64 { return c.Enqueued }},
	{"duplicate", func(c *pawl.Counters) int64 { return c.Duplicate }},
	{"started", func(c *pawl.Counters) int64 { return c.Started }},
	{"done", func(c *pawl.Counters) int64 { return c.Done }},
	{"failed", func(c *pawl.Counters) int64 { return c.Failed }},
	{"retried", func(c *pawl.Counters) int64 { return c.Retried }},
	{"snoozed", func(c *pawl.Counters) int64 { return c.Snoozed }},
	{"released", func(c *pawl.Counters) int64 { return c.Released }},
	{"crashed", func(c *pawl.Counters) int64 { return c.Crashed }},
	{"dead", func(c *pawl.Counters) int64 { return c.Dead }},
	{"redriven", func(c *pawl.Counters) int64 { return c.Redriven }},
	{"discarded", func(c *pawl.Counters) int64 { return c.Discarded }},
	{"cancelled", func(c *pawl.Counters) int64 { return c.Cancelled }},
	{"expired", func(c *pawl.Counters) int64 { return c.Expired }},
	{"purged", func(c *pawl.Counters) int64 { return c.Purged }},
	{"dropped", func(c *pawl.Counters) int64 { return c.Dropped }},
	{"skipped", func(c *pawl.Counters) int64 { return c.Skipped }},
	{"lost", func(c *pawl.Counters) int64 { return c.Lost }},
	{"healed", func(c *pawl.Counters) int64 { return c.Healed }},
}
