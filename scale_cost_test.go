package pawl

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// D3. What a call costs at its cap of jobs, and what a settle costs beside a
// backlog, in processor time of the server: a busy machine does not stretch it.
func TestCallsAtTheirCapBesideABacklog(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		n, _ := strconv.Atoi(os.Getenv("PAWL_SCALE"))
		for _, backlog := range []int{0, max(n, 10_000)} {
			r := open(t)
			fill(r, backlog)
			var took []time.Duration
			for range 500 {
				fill(r, 1)
				got := r.lease(ask{n: 1})
				start := time.Now()
				r.must("k", r.settleShot("done", "", hold{got.jobs[0].id, got.token}))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			t.Logf("measured D3: settle of one beside %d ready: p50 %v, p99 %v", backlog, took[len(took)/2], took[len(took)*99/100])
			require.EqualValues(t, 500, r.counter("done"))
		}
		r := open(t)
		const rounds = 10
		fill(r, rounds*maxCallRuns)
		leases := make([]answer, rounds)
		cost(r, "lease", maxCallRuns, rounds, func(i int) { leases[i] = r.lease(ask{n: maxCallRuns}) })
		holds, ids := make([][]hold, rounds), make([][]string, rounds)
		for i, got := range leases {
			require.Len(t, got.jobs, maxCallRuns)
			for _, j := range got.jobs {
				holds[i], ids[i] = append(holds[i], hold{j.id, got.token}), append(ids[i], j.id)
			}
		}
		all := strings.Repeat("k", maxCallRuns)
		cost(r, "settle", maxCallRuns, 5, func(i int) { r.must(all, r.settleShot("done", "", holds[i]...)) })
		cost(r, "bury", maxCallRuns, 5, func(i int) { r.must(all, r.buryShot("", holds[5+i]...)) })
		cost(r, "deaths", maxCallRuns, rounds, func(int) {
			attempt(t.Context(), r.rdb, &call{script: scriptDeaths, keys: []string{r.k.dead}, args: []any{"-", "+"}})
		})
		redrives := make([]shot, 5)
		for i := range redrives {
			redrives[i] = r.redriveShot("", "", rec(long), ids[5+i]...)
		}
		cost(r, "redrive", maxCallRuns, 5, func(i int) { r.fire(redrives[i]) })
		cost(r, "enqueue", maxCallItems, rounds, func(int) { r.fresh(maxCallItems) })
		r = open(t)
		fill(r, rounds*maxCallRuns)
		for i := range holds {
			got := r.lease(ask{n: maxCallRuns})
			for j, job := range got.jobs {
				holds[i][j] = hold{job.id, got.token}
			}
		}
		cost(r, "finish of kept jobs", maxCallRuns, 5, func(i int) { r.must(all, r.finishShot("done", "", holds[i]...)) })
		cost(r, "finish of followed jobs", maxCallRuns, 5, func(i int) {
			r.fire(r.finishThen(0, "done", "", nil, []newJob{{rec(), ""}}, holds[5+i]...))
		})
	})
}

// fill enqueues n jobs.
func fill(r *rig, n int) {
	for ; n > 0; n -= maxCallItems {
		r.fresh(min(n, maxCallItems))
	}
}

// cost logs the processor time of a call.
func cost(r *rig, name string, jobs, times int, call func(int)) {
	r.t.Helper()
	before := processor(r)
	for i := range times {
		call(i)
	}
	r.t.Logf("measured D3: %s of %d: %v of processor time", name, jobs, (processor(r)-before)/time.Duration(times))
}

// processor is the time that the server's main thread has used.
func processor(r *rig) (used time.Duration) {
	r.t.Helper()
	info := r.rdb.InfoMap(r.t.Context(), "cpu")
	require.NoError(r.t, info.Err())
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		s, err := strconv.ParseFloat(info.Item("CPU", field), 64)
		require.NoError(r.t, err)
		used += time.Duration(s * float64(time.Second))
	}
	return used
}
