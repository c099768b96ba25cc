package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sample is what a process takes up at a moment, by the names of sampled.
type Sample struct {
	At   int64 // ms
	Took map[string]int64
}

// sampled are the figures of samples, and by how much each may rise from the first
// third of a soak to the last beside a quarter of itself: the load is random.
var sampled = []struct {
	name  string
	slack int64
}{
	{"goroutines", 15}, {"connections", 10}, {"files", 15}, {"heap after GC, KiB", 2 << 10}, {"resident memory, KiB", 16 << 10},
	{"used_memory, KiB", 2 << 10}, {"keys", 60},
}

// sampleSelf appends a sample of this process to its file every so often.
func sampleSelf(ctx context.Context, cfg childConfig, rdb *redis.Client) {
	sampleInto(ctx, cfg.Dir, cfg.Name, cfg.Sample, func() map[string]int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return map[string]int64{"goroutines": int64(runtime.NumGoroutine()), "heap after GC, KiB": int64(m.HeapAlloc >> 10),
			"connections": int64(rdb.PoolStats().TotalConns), "files": files("self"), "resident memory, KiB": resident("self")}
	})
}

// sampleRedis does so for the server, while it can be reached.
func (r *runner) sampleRedis(ctx context.Context) {
	sampleInto(ctx, r.opts.Dir, "redis", r.opts.Sample, func() map[string]int64 {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		info, err := r.direct.InfoMap(ctx, "memory", "clients").Result()
		keys, err2 := r.direct.DBSize(ctx).Result()
		if err != nil || err2 != nil {
			return nil
		}
		memory, _ := strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
		clients, _ := strconv.ParseInt(info["Clients"]["connected_clients"], 10, 64)
		return map[string]int64{"used_memory, KiB": memory >> 10, "connections": clients, "keys": keys}
	})
}

func sampleInto(ctx context.Context, dir, process string, every time.Duration, take func() map[string]int64) {
	f, err := os.Create(filepath.Join(dir, process+".samples"))
	must(err)
	defer func() { _ = f.Close() }()
	for wait(ctx, every) == nil {
		if took := take(); took != nil {
			line, err := json.Marshal(Sample{time.Now().UnixMilli(), took})
			must(err)
			_, err = f.Write(append(line, '\n'))
			must(err)
		}
	}
}

// files is how many files a process has open; 0 if the system does not say.
func files(pid string) int64 {
	entries, _ := os.ReadDir(filepath.Join("/proc", pid, "fd"))
	return int64(len(entries))
}

func resident(pid string) int64 {
	text, _ := os.ReadFile(filepath.Join("/proc", pid, "statm"))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()) >> 10
}

// readSamples is the samples of a process.
func readSamples(dir, process string) (all []Sample, err error) {
	text, err := os.ReadFile(filepath.Join(dir, process+".samples"))
	for line := range bytes.Lines(text) {
		var s Sample
		if json.Unmarshal(line, &s) == nil { // the last one may be torn
			all = append(all, s)
		}
	}
	return all, err
}

// Trend is how a figure of a process went: the medians of the first and of the last
// third of the time, and the most there was.
type Trend struct {
	Process, Figure   string
	First, Last, Most int64
	rises             bool
}

// trends are those of the figures that a process has.
func trends(process string, samples []Sample) (all []Trend) {
	for _, figure := range sampled {
		var values []int64
		for _, s := range samples {
			if v, has := s.Took[figure.name]; has {
				values = append(values, v)
			}
		}
		if len(values) < 3 {
			continue
		}
		third := len(values) / 3
		t := Trend{Process: process, Figure: figure.name, First: median(values[:third]), Last: median(values[len(values)-third:]), Most: slices.Max(values)}
		t.rises = t.Last > t.First+t.First/4+figure.slack
		all = append(all, t)
	}
	return all
}

func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (t Trend) String() string {
	return fmt.Sprintf("| %s | %s | %d | %d | %d |", t.Process, t.Figure, t.First, t.Last, t.Most)
}
