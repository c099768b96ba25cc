package chaos

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl"
)

var seedFlag = flag.Uint64("chaos.seed", 0, "run the schedule of this seed, or from this one on as many as CHAOS_SEEDS says")

func TestMain(m *testing.M) {
	if os.Getenv(ChildEnv) != "" {
		Child()
		return
	}
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// setting is a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

// total is the sum of many runs.
type total struct {
	mu                 sync.Mutex
	runs, clean        int
	violations         int
	counts             map[string]int
	starts, duplicates int
	jobs               pawl.Counters
	resumed            []int64
}

func (s *total) add(r Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	s.violations += len(r.Violations)
	if len(r.Violations)+len(r.Errors)+len(r.Noise) == 0 {
		s.clean++
	}
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	for name, n := range r.Counts {
		s.counts[name] += n
	}
	s.starts += r.starts()
	s.duplicates += r.duplicates()
	addCounters(&s.jobs, r.State.Stats.Total)
	if took, _, waited := newIndex(r.History, r.State).resumed(); waited {
		s.resumed = append(s.resumed, took)
	}
}

func (s *total) log(t *testing.T, took time.Duration) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == 0 {
		return
	}
	t.Logf("%d runs, %d clean, violations %d (lost, stuck, run twice without a reason, or any other), in %v: %s", s.runs, s.clean, s.violations, took.Round(time.Second), summary(s.counts, s.jobs, s.starts, s.duplicates))
	if slices.Sort(s.resumed); len(s.resumed) > 0 {
		t.Logf("the first lease after the last fault, with jobs waiting, in %d runs: median %d ms, at most %d ms",
			len(s.resumed), s.resumed[len(s.resumed)/2], s.resumed[len(s.resumed)-1])
	}
}

// TestChaos is small unless CHAOS_SEEDS, CHAOS_JOBS and CHAOS_SECONDS, the time of
// each seed's faults, say otherwise. The seeds are 1, 2, 3 and so on, so that a
// failure can be had again: with -chaos.seed that one alone is run. With CHAOS_DIR
// the histories are kept there.
func TestChaos(t *testing.T) {
	t.Parallel()
	first, seeds := uint64(1), 3
	if *seedFlag != 0 {
		first, seeds = *seedFlag, 1
	}
	seeds = setting(t, "CHAOS_SEEDS", seeds)
	jobs := setting(t, "CHAOS_JOBS", 300)
	window := time.Duration(setting(t, "CHAOS_SECONDS", max(4, min(jobs/75, 15)))) * time.Second
	var all total
	began := time.Now()
	t.Cleanup(func() { all.log(t, time.Since(began)) })
	for seed := first; seed < first+uint64(seeds); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			opts := Options{Seed: seed, Jobs: jobs, Window: window, Wide: true}
			if jobs > 2000 { // several such runs at once leave each other waiting for a processor
				opts.Visibility = 2 * time.Second
			}
			if dir := os.Getenv("CHAOS_DIR"); dir != "" {
				opts.Dir = filepath.Join(dir, fmt.Sprintf("seed-%d-%d", seed, os.Getpid()))
				require.NoError(t, os.MkdirAll(opts.Dir, 0o755))
			}
			result := Run(t, opts)
			all.add(result)
			t.Logf("seed %d: %s", seed, result.summary())
			result.requireClean(t, seed)
		})
	}
}

// requireClean fails the test with all that is known about what went wrong.
func (r Result) requireClean(t *testing.T, seed uint64) {
	t.Helper()
	require.Empty(t, r.Errors)
	require.Empty(t, r.Noise)
	if len(r.Violations) == 0 {
		return
	}
	for _, v := range r.Violations[:min(len(r.Violations), 10)] {
		t.Errorf("%s", v)
		for _, e := range r.History {
			if v.Job != "" && e.Job == v.Job {
				t.Logf("    %s", e)
			}
		}
	}
	for _, e := range r.History {
		if e.Op == Fault {
			t.Logf("  %s", e)
		}
	}
	t.Errorf("%d violations; run it again with -chaos.seed=%d", len(r.Violations), seed)
}

// summary is one line: what was done to it, and what it did.
func (r Result) summary() string {
	return fmt.Sprintf("%.1f s, %d times starved: %s", r.Took.Seconds(), r.starved(), summary(r.Counts, r.State.Stats.Total, r.starts(), r.duplicates()))
}

func summary(counts map[string]int, n pawl.Counters, starts, duplicates int) string {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		faults = append(faults, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return fmt.Sprintf("faults: %s; jobs: enqueued %d, done %d, discarded %d, cancelled %d, purged %d, deaths %d, redriven %d, crashed %d; runs: %d, explained duplicates %d",
		strings.Join(faults, ", "), n.Enqueued, n.Done, n.Discarded, n.Cancelled, n.Purged, n.Dead, n.Redriven, n.Crashed, starts, duplicates)
}

func (r Result) starts() (n int) {
	for _, e := range r.History {
		if e.Op == Start {
			n++
		}
	}
	return n
}

// starved is how often a process was.
func (r Result) starved() (n int) {
	for _, e := range r.History {
		if e.Class == Starved {
			n++
		}
	}
	return n
}

// duplicates is how many effects came after one that may have been the last.
func (r Result) duplicates() (n int) {
	for _, j := range newIndex(r.History, r.State).jobs {
		for i, run := range j.runs {
			if i > 0 && j.runs[i-1].effect != nil && len(j.runs[i-1].ends) == 0 && run.effect != nil {
				n++
			}
		}
	}
	return n
}
