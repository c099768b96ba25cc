//go:build !race

package pawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every call takes 500 items, with a key each where there may be one.
func TestEachScriptTakesFiveHundredItems(t *testing.T) {
	t.Parallel()
	const n = maxCallItems
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		// begin enqueues n jobs with a key each and leases them all.
		begin := func(r *rig, record, form string) (holds []hold, keys []string) {
			var jobs []newJob
			for i := range n {
				keys = append(keys, fmt.Sprint("key", i))
				jobs = append(jobs, newJob{record, fmt.Sprintf(form, i+1)})
			}
			ids, _ := r.enqueue(keys, jobs...)
			if strings.HasPrefix(form, "d 60000") {
				r.ripen(ids...)
			}
			got := r.lease(ask{n: n})
			require.Len(t, got.jobs, n)
			for _, j := range got.jobs {
				holds = append(holds, hold{j.id, got.token})
			}
			return holds, keys
		}
		// keyed gives each job of a shot its own key; width is its arguments a job.
		keyed := func(r *rig, s shot, keys []string, width int) shot {
			for i, key := range keys {
				s.keys = append(s.keys, r.k.unique(key))
				s.args[len(s.args)%width+width*i+width-1] = i + 1 // behind what is said once a call
			}
			return s
		}
		all := strings.Repeat("k", n)
		for name, form := range map[string]string{
			"fresh": "d 0 0 %d d 0", "due": "d 60000 0 %d d 0", "prio": "d 0 7 %d d 0", "due with a priority": "d 60000 7 %d d 0",
		} {
			t.Run(name+" jobs", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				body := rec(long)
				if strings.Contains(form, " 7 ") {
					body = rec(priority(7))
				}
				holds, keys := begin(r, body, form)
				r.must(all, r.extendShot(holds...))
				r.must(all, r.releaseShot(holds...))
				again := r.lease(ask{n: n, nonce: "second"})
				require.Len(t, again.jobs, n)
				for i := range holds {
					holds[i].token = again.token
				}
				r.must(all, r.retryShot("retried", 0, body, holds...))
				for _, h := range holds {
					r.ripen(h.id)
				}
				holds = nil
				for len(holds) < n { // the look at what has a priority is bounded too
					got := r.lease(ask{n: n, nonce: "third"})
					require.NotEmpty(t, got.jobs)
					for _, j := range got.jobs {
						holds = append(holds, hold{j.id, got.token})
					}
				}
				slices.SortFunc(holds, func(a, b hold) int { return strings.Compare(a.id, b.id) })
				r.must(all, keyed(r, r.buryShot("", holds...), keys, 5))
				require.EqualValues(t, n, r.number("XLEN", r.k.dead))
				var ids []string
				for _, h := range holds {
					ids = append(ids, h.id)
				}
				s := r.redriveShot("", "", body, ids...)
				for i, key := range keys {
					s.keys, s.args[4*i+3] = append(s.keys, r.k.unique(key)), fmt.Sprintf("%d d 0", i+1)
				}
				r.must(strings.TrimSpace(strings.Repeat("ok ", n)), s)
				got := r.lease(ask{n: n, nonce: "fourth"})
				holds = holds[:0]
				for _, j := range got.jobs {
					holds = append(holds, hold{j.id, got.token})
				}
				slices.SortFunc(holds, func(a, b hold) int { return strings.Compare(a.id, b.id) })
				require.Len(t, holds, n)
				r.must(all, keyed(r, r.settleShot("done", "", holds...), keys, 4))
				require.Equal(t, []string{r.k.meta, r.k.minutes}, r.left())
				r.check()
			})
		}
		t.Run("delete", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			holds, keys := begin(r, rec(), "d 0 0 %d d 0")
			r.must(all, keyed(r, r.buryShot("", holds...), keys, 5))
			var ids []string
			for _, h := range holds {
				ids = append(ids, h.id)
			}
			r.must(all, r.deleteShot(ids...))
			require.Equal(t, []string{r.k.meta, r.k.minutes}, r.left())
			r.check()
		})
	})
}

func TestPurgeAndFreeTakeFiveHundredItems(t *testing.T) {
	t.Parallel()
	const n = maxCallItems
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for state, form := range map[State]string{StateReady: "d 0 7 %d d 60000", StateDelayed: "d 60000 0 %d d 60000"} {
			r := open(t)
			var keys []string
			var jobs []newJob
			for i := range n {
				keys = append(keys, fmt.Sprint("key", i))
				jobs = append(jobs, newJob{rec(long), fmt.Sprintf(form, i+1)})
			}
			ids, _ := r.enqueue(keys, jobs...)
			r.must(strings.Repeat("l", n), r.freeShot(keys...))
			source := map[State]string{StateReady: "prio", StateDelayed: "delayed"}[state]
			require.Len(t, r.words(r.listCall(source, "", "")), 3+4*n)
			r.must(strings.Repeat("k", n), r.purgeShot(state, keys, ids...))
			require.EqualValues(t, n, r.counter("purged"))
			require.Len(t, r.left(), 2+n, "the windows last")
			r.check()
			r.must(strings.Repeat("k", n), r.freeShot(keys...))
			require.Equal(t, []string{r.k.meta, r.k.minutes}, r.left())
		}
	})
}

// left are the keys of a queue in which there is something.
func (r *rig) left() (keys []string) {
	r.t.Helper()
	for key, text := range r.dump() {
		if text != "stream" && key != r.k.wake {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
