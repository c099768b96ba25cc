package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// risky is the queue of a soak whose jobs may kill their worker.
const risky = "chaos:risky"

// soakPlan is the schedule of a soak: what NewPlan has, a tenth as often. The last
// worker and the producer are veterans: they live through all of it, and are
// sampled, so neither is killed, and the worker does not serve the risky queue.
func soakPlan(seed uint64, workers int, visibility, window time.Duration) (plan []Step) {
	var skipped time.Duration
	for _, s := range NewPlan(seed, workers, visibility, window/10) {
		s.After = 10*s.After + skipped
		if skipped = 0; s.Kind == "producer" {
			skipped = s.After
			continue
		}
		if s.Kind == "kill" || s.Kind == "term" {
			s.Target %= workers - 1
		}
		plan = append(plan, s)
	}
	return plan
}

// trends are those of the veterans and of Redis.
func (r *runner) trends() (all []Trend) {
	veteran := fmt.Sprintf("worker%d", len(r.workers)-1)
	for _, name := range []string{veteran, "producer"} {
		if paths, _ := filepath.Glob(filepath.Join(r.opts.Dir, name+".*"+suffix)); len(paths) != 1 {
			r.fail("%s did not live through the soak: %v", name, paths)
		}
	}
	for _, name := range []string{veteran + ".1", "producer.1", "redis"} {
		samples, err := readSamples(r.opts.Dir, name)
		if err != nil && !os.IsNotExist(err) {
			r.fail("samples: %v", err)
		}
		all = append(all, trends(name, samples)...)
	}
	return all
}
