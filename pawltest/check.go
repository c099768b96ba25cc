package pawltest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawlq/pawl"
)

// check fails the test for each inconsistency of each queue of the namespace.
func (e *Env) check() {
	ctx := context.Background() // that of the test has ended
	names, err := e.queues(ctx)
	if err != nil {
		e.t.Errorf("pawltest: the queues cannot be listed: %v", err)
	}
	for _, name := range names {
		found, err := e.Client.Queue(name).Check(ctx)
		if err != nil && !errors.Is(err, pawl.ErrNotFound) { // which has a few keys that go by themselves
			e.t.Errorf("pawltest: queue %q cannot be checked: %v", name, err)
		}
		for _, v := range found {
			e.t.Errorf("pawltest: queue %q is inconsistent: %v", name, v)
		}
	}
}

// queues are the names of the queues that have keys, sorted.
func (e *Env) queues(ctx context.Context) ([]string, error) {
	var names []string
	before := e.namespace + ":{"
	for keys := e.Redis.Scan(ctx, 0, before+"*", 1000).Iterator(); ; {
		if !keys.Next(ctx) {
			slices.Sort(names)
			return slices.Compact(names), keys.Err()
		}
		name, _, ok := strings.Cut(strings.TrimPrefix(keys.Val(), before), "}:")
		if ok {
			names = append(names, name)
		}
	}
}
