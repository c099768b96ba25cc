package pawl

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// BenchmarkIdleQueues runs one job after the other of one queue, in a worker that
// serves others in which nothing happens. ns/op is from the enqueue to the start of
// the handler; beside it is what a job took of processors. In "asked", all queues
// ask for work at the same time, as they do when a blocking read has timed out.
func BenchmarkIdleQueues(b *testing.B) {
	for _, idle := range []int{0, 100, 1000, 2000} {
		b.Run(strconv.Itoa(idle), func(b *testing.B) { benchIdle(b, idle, func(*Worker) {}) })
		b.Run(strconv.Itoa(idle)+"/asked", func(b *testing.B) {
			benchIdle(b, idle, func(w *Worker) {
				for _, f := range w.feeds {
					f.wake()
				}
			})
		})
	}
}

func benchIdle(b *testing.B, idle int, first func(*Worker)) {
	rdb := redistest.Start(b).Client(b)
	c, err := New(rdb, Config{})
	require.NoError(b, err)
	queues := []string{"busy"}
	for i := range idle {
		queues = append(queues, "idle"+strconv.Itoa(i))
	}
	w, err := NewWorker(c, WorkerConfig{Queues: Queues(queues...)})
	require.NoError(b, err)
	ran := make(chan struct{})
	Handle(w, func(context.Context, *Job[parcel]) error { ran <- struct{}{}; return nil })
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	one := func() {
		first(w)
		_, err := c.Queue("busy").Enqueue(b.Context(), hundredBytes)
		require.NoError(b, err)
		<-ran
	}
	one()
	own, server := ownTime(b), serverTime(b, rdb)
	for b.Loop() {
		one()
	}
	b.ReportMetric(float64((ownTime(b)-own).Microseconds())/float64(b.N), "go-us/op")
	b.ReportMetric(float64((serverTime(b, rdb)-server).Microseconds())/float64(b.N), "redis-us/op")
	stop()
	require.NoError(b, <-ended)
}

// ownTime is what this process has used of processors.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverTime is what the server has.
func serverTime(b *testing.B, rdb *redis.Client) time.Duration {
	b.Helper()
	info, err := rdb.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	var sum float64
	for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
		_, rest, _ := strings.Cut(info, "\n"+name)
		text, _, _ := strings.Cut(rest, "\r")
		s, err := strconv.ParseFloat(text, 64)
		require.NoError(b, err)
		sum += s
	}
	return time.Duration(sum * float64(time.Second))
}
