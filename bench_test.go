package pawl

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// parcel is a job of 100 bytes.
type parcel struct{ Text string }

func (parcel) Kind() string { return "parcel" }

var hundredBytes = parcel{strings.Repeat("x", 89)}

func benchQueue(b *testing.B) *Queue {
	b.Helper()
	c, err := New(redistest.Start(b).Client(b), Config{})
	require.NoError(b, err)
	b.ReportAllocs()
	return c.Queue("bench")
}

func BenchmarkEnqueue(b *testing.B) {
	q := benchQueue(b)
	for b.Loop() {
		_, err := q.Enqueue(b.Context(), hundredBytes)
		require.NoError(b, err)
	}
}

// BenchmarkEnqueueCallers compares enqueues that share round trips with the
// same script called once a job.
func BenchmarkEnqueueCallers(b *testing.B) {
	for _, callers := range []int{4, 16, 64} {
		b.Run("shared/"+strconv.Itoa(callers), func(b *testing.B) {
			q := benchQueue(b)
			b.SetParallelism(callers / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := q.Enqueue(context.Background(), hundredBytes); err != nil {
						b.Error(err)
					}
				}
			})
		})
		b.Run("single/"+strconv.Itoa(callers), func(b *testing.B) {
			q := benchQueue(b)
			b.SetParallelism(callers / 2)
			b.RunParallel(func(pb *testing.PB) {
				l := q.lanes.get()
				for pb.Next() {
					it, err := q.prepare(context.Background(), hundredBytes, nil)
					if err != nil {
						b.Error(err)
						return
					}
					c := &call{script: scriptEnqueue}
					q.batch.fill(c, l, l.next(), []*group{newGroup(it)})
					if attempt(context.Background(), q.client.rdb, c); c.err != nil {
						b.Error(c.err)
					}
				}
			})
		})
	}
}

func BenchmarkEnqueueMany(b *testing.B) {
	q := benchQueue(b)
	items := make([]Item, maxCallItems)
	for i := range items {
		items[i].Args = hundredBytes
	}
	for b.Loop() {
		_, err := q.EnqueueMany(b.Context(), items)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(b.N*len(items))/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkDrain runs b.N waiting jobs whose handler does nothing.
func BenchmarkDrain(b *testing.B) {
	for _, slots := range []int{1, 10, 100} {
		b.Run(strconv.Itoa(slots), func(b *testing.B) {
			q := benchQueue(b)
			items := make([]Item, b.N)
			for i := range items {
				items[i].Args = hundredBytes
			}
			_, err := q.EnqueueMany(b.Context(), items)
			require.NoError(b, err)
			w, err := NewWorker(q.client, WorkerConfig{Queues: Queues("bench"), Concurrency: slots})
			require.NoError(b, err)
			var ran atomic.Int64
			ctx, stop := context.WithCancel(context.Background())
			Handle(w, func(context.Context, *Job[parcel]) error {
				if ran.Add(1) == int64(b.N) {
					stop()
				}
				return nil
			})
			b.ResetTimer()
			require.NoError(b, w.Run(ctx))
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			s, err := q.Stats(b.Context())
			require.NoError(b, err)
			require.EqualValues(b, b.N, s.Total.Done)
		})
	}
}
