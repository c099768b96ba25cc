package pawl

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// DeadGroup is dead jobs of one kind with one kind of error: numbers, ids, times
// and addresses in the text do not split a group.
type DeadGroup struct {
	Kind        string
	Fingerprint string     // for DeadFilter; of this version of pawl, so not to be kept
	Example     string     // the error of the last of them
	Reason      DeadReason // of all of them; "" if they died of several
	Count       int
	First, Last time.Time // deaths, by the server's clock
}

// Groups sorts the dead jobs by kind and kind of error, the largest group first.
// It walks all of them, in pages, as List does; errors as List.
func (d *DeadLetters) Groups(ctx context.Context) ([]DeadGroup, error) {
	groups := map[string]*DeadGroup{}
	err := d.match(ctx, DeadFilter{}, func(page []deadEntry) (more bool, err error) {
		for _, e := range page {
			print := fingerprint(e.job.Kind, e.job.Error)
			g := groups[print]
			if g == nil {
				g = &DeadGroup{Kind: e.job.Kind, Fingerprint: print, Reason: e.job.Reason, First: e.job.DiedAt}
				groups[print] = g
			}
			g.Count++
			if g.Reason != e.job.Reason {
				g.Reason = ""
			}
			g.Example, g.Last = e.job.Error, e.job.DiedAt
		}
		return true, nil
	})
	if err != nil {
		return nil, d.q.wrap("group dead", err)
	}
	sorted := make([]DeadGroup, 0, len(groups))
	for _, g := range groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return sorted, nil
}
