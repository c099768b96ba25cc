package pawlprom_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/pawlprom"
	"github.com/pawlq/pawl/pawltest"
)

// watch counts the commands of a client by name, and holds those named hold.
type watch struct {
	mu    sync.Mutex
	calls map[string]int
	hold  atomic.Pointer[chan struct{}]
}

func (w *watch) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *watch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.mu.Lock()
		w.calls[cmd.Name()]++
		w.mu.Unlock()
		if gate := w.hold.Load(); gate != nil {
			<-*gate
		}
		return next(ctx, cmd)
	}
}

func (w *watch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (w *watch) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[name]
}

func TestScrapesAtTheSameTimeShareOneLook(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		put(t, env.Client.Queue("mail"), 1, "")
		reg := registry(t, pawlprom.NewCollector(env.Client, "mail"))
		values(t, reg, "pawl_redis_up") // Doctor has been asked, and the script is cached
		w := &watch{calls: map[string]int{}}
		gate := make(chan struct{})
		w.hold.Store(&gate)
		env.Redis.AddHook(w)
		var scrapes sync.WaitGroup
		for range 50 {
			scrapes.Go(func() {
				families, err := reg.Gather()
				if err != nil || len(families) != 7 {
					t.Errorf("%d families, %v", len(families), err)
				}
			})
		}
		synctest.Wait() // all of them wait
		w.hold.Store(nil)
		close(gate)
		scrapes.Wait()
		require.Equal(t, 1, w.count("evalsha"))
		values(t, reg, "pawl_redis_up")
		require.Equal(t, 2, w.count("evalsha"), "the next one looks anew")
	})
}

func TestDoctorIsAskedOnceInTenMinutes(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := &watch{calls: map[string]int{}}
		env.Redis.AddHook(w)
		reg := registry(t, pawlprom.NewCollector(env.Client))
		for _, asked := range []int{1, 2} {
			for range 20 {
				values(t, reg, "pawl_redis_up")
				env.Advance(30 * time.Second)
			}
			require.Equal(t, asked, w.count("info"))
		}
	})
}
