package pawl_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/redis/go-redis/v9"
)

type perfJob struct{ S string }

func (perfJob) Kind() string { return "perf" }

func TestPerfTmp(t *testing.T) {
	if os.Getenv("PERF") == "" { t.Skip() }
	s := redistest.Start(t)
	for _, slots := range []int{1, 10, 100, 500} {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 100})
	rdb.FlushAll(context.Background())
	c, _ := pawl.New(rdb, pawl.Config{})
	q := c.Queue("perf")
	N := 100000
	if slots == 1 { N = 20000 }
	pay := perfJob{string(make([]byte, 80))}
	var b []byte
	for range 90 { b = append(b, 'x') }
	pay.S = string(b)
	start := time.Now()
	var wg sync.WaitGroup
	var n atomic.Int64
	callers := 16
	for range callers {
		wg.Go(func() {
			for n.Add(1) <= int64(N) {
				if _, err := q.Enqueue(context.Background(), pay); err != nil { panic(err) }
			}
		})
	}
	wg.Wait()
	d := time.Since(start)
	fmt.Printf("enqueue %d callers: %.0f/s\n", callers, float64(N)/d.Seconds())
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("perf"), Concurrency: slots})
	if err != nil { panic(err) }
	var done atomic.Int64
	ch := make(chan struct{})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[perfJob]) error {
		if done.Add(1) == int64(N) { close(ch) }
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	start = time.Now()
	wg.Go(func() { w.Run(ctx) })
	<-ch
	d = time.Since(start)
	cancel(); wg.Wait()
	st, _ := q.Stats(context.Background())
	fmt.Printf("drain %d slots: %.0f/s %+v\n", slots, float64(N)/d.Seconds(), st.Total)
	start = time.Now()
	items := make([]perfJob, N)
	for i := range items { items[i] = pay }
	if _, err := q.EnqueueMany(context.Background(), pawl.Items(items)); err != nil { panic(err) }
	fmt.Printf("bulk: %.0f/s\n", float64(N)/time.Since(start).Seconds())
	mem := rdb.Info(context.Background(), "memory").Val()
	_ = mem
	rdb.Close()
	}
	rdb := s.Client(t)
	c, _ := pawl.New(rdb, pawl.Config{Namespace: "one"})
	q := c.Queue("perf")
	for _, callers := range []int{1, 4, 64} {
	start := time.Now()
	var wg sync.WaitGroup
	for range callers { wg.Go(func() { for range 20000/callers { q.Enqueue(context.Background(), perfJob{"x"}) } }) }
	wg.Wait()
	fmt.Printf("%d callers: %.0f/s\n", callers, 20000/time.Since(start).Seconds())
	}
}
