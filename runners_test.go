package pawl

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runnersOf is runners in a bubble, which end with the test.
func runnersOf[T any](t *testing.T, do func(T)) *runners[T] {
	p := newRunners(do)
	t.Cleanup(func() { close(p.stop) })
	return p
}

func (p *runners[T]) counts() (idle, waiting int, coming bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle, len(p.waiting) - p.taken, p.coming
}

func TestNothingWaitsBehindWhatTakesLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var begun, ended atomic.Int64
		p := runnersOf(t, func(int) {
			begun.Add(1)
			<-gate
			ended.Add(1)
		})
		for i := range 200 {
			p.start(i)
			if i%50 == 0 {
				synctest.Wait()
				require.EqualValues(t, i+1, begun.Load())
			}
		}
		synctest.Wait()
		require.EqualValues(t, 200, begun.Load())
		close(gate)
		synctest.Wait()
		require.EqualValues(t, 200, ended.Load())
		idle, waiting, coming := p.counts()
		require.Equal(t, 200, idle, "they wait for more")
		require.Zero(t, waiting)
		require.False(t, coming)
		<-time.After(runnerPatience)
		synctest.Wait()
		idle, _, _ = p.counts()
		require.Zero(t, idle, "for a while")
	})
}

func TestEachThingIsDoneOnceWhateverEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		done := map[int]int{}
		p := runnersOf(t, func(n int) {
			mu.Lock()
			done[n]++
			mu.Unlock()
			switch n % 5 {
			case 0:
				runtime.Goexit()
			case 1:
				<-time.After(time.Duration(n) * time.Millisecond)
			case 2:
				runtime.Gosched()
			}
		})
		var starters sync.WaitGroup
		for s := range 4 {
			starters.Go(func() {
				for i := range 250 {
					p.start(4*i + s)
					if i%25 == 0 {
						<-time.After(300 * time.Millisecond) // some are idle, some have left
					}
				}
			})
		}
		starters.Wait()
		<-time.After(2 * time.Second)
		synctest.Wait()
		require.Len(t, done, 1000)
		for n, times := range done {
			require.Equal(t, 1, times, n)
		}
	})
}

// A goroutine that is called in the moment in which it leaves comes all the same.
func TestWhatComesAtTheEndOfPatienceIsDone(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var done atomic.Int64
			p := runnersOf(t, func(int) { done.Add(1) })
			for i := range 5 {
				p.start(i)
				<-time.After(runnerPatience)
			}
			synctest.Wait()
			require.EqualValues(t, 5, done.Load())
		})
	}
}

func TestWhatWasStartedBeforeTheEndIsDone(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var done atomic.Int64
			p := newRunners(func(int) { done.Add(1) })
			p.start(0)
			synctest.Wait() // it is idle now
			p.start(1)
			p.start(2)
			close(p.stop)
			synctest.Wait()
			require.EqualValues(t, 3, done.Load())
			idle, waiting, _ := p.counts()
			require.Zero(t, idle+waiting)
			p.start(3)
			synctest.Wait()
			require.EqualValues(t, 4, done.Load())
		})
	}
}

// A worker at its limit may never have nothing that waits.
func TestWhatNeverEmptiesDoesNotGrow(t *testing.T) {
	t.Parallel()
	p := newRunners(func(int) {})
	p.coming = true // so that only the test takes
	for i := range 50 {
		p.start(i)
	}
	for i := range 10_000 {
		p.start(50 + i)
		it, ok := p.take(false)
		require.True(t, ok)
		require.Equal(t, i, it)
		require.LessOrEqual(t, cap(p.waiting), 512)
	}
}
