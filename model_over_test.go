//go:build !race

package pawl

import (
	"context"
	"fmt"
	"slices"
)

// over compares what those are told who wait for jobs.
func (x *modelMachine) over() error {
	k := &x.q.keys
	c := &call{script: x.rig.scripts["over"], keys: []string{k.jobs, k.held, k.leases, k.dead, k.index, k.done, k.doneAt}}
	var want []string
	for range 1 + x.roll(4, "jobs") {
		j := x.someKept()
		if x.roll(2, "one that may live") == 0 {
			j = x.job("job", modelFresh, modelDue, modelPrio, modelLeased, modelParked, modelDead)
		}
		if j == nil {
			continue
		}
		c.args = append(c.args, j.id)
		kept, is := x.m.kept[j.id]
		switch {
		case j.live():
			want = append(want, "live", "", "")
		case j.place == modelDead:
			want = append(want, "dead", j.record, j.grave)
		case is && kept.till > x.m.ms():
			want = append(want, "done", kept.record, modelText(kept.till))
		default:
			want = append(want, "gone", "", "")
		}
	}
	if len(want) == 0 {
		return nil
	}
	x.say("%v", c.args)
	attempt(context.Background(), x.rig.rdb, c)
	if got, err := c.words(3, len(c.args)); err != nil || !slices.Equal(got, want) {
		return fmt.Errorf("over answered %q, %v, want %q", got, err, want)
	}
	return nil
}
