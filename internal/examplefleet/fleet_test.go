package examplefleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl/internal/exampleredis"
)

// The workers of these tests are the program of the tests, started again.
func TestMain(m *testing.M) {
	if args, ok := Worker(); ok {
		if err := work(args[0], args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

type line struct {
	N   int
	Bye bool
}

// work does what a test wants of a worker.
func work(what, namespace string) error {
	ctx, rdb, stop, err := Open()
	if err != nil {
		return err
	}
	defer stop()
	switch what {
	case "count": // until it is killed or stopped
		for n := 1; ctx.Err() == nil; n++ {
			Tell(line{N: n})
		}
		Tell(line{Bye: true})
	case "ask": // the Redis of its parent
		n, err := rdb.Get(ctx, namespace+":asked").Int()
		Tell(line{N: n})
		return err
	case "babble":
		fmt.Println("hello")
		<-ctx.Done()
	case "persist": // though it is told to stop
		Tell(line{N: 1})
		<-time.After(time.Hour)
	case "fail":
		<-ctx.Done()
		return errors.New("as this test wants it (not a failure of the test)")
	}
	return nil
}

// listener is a fleet on a Redis of its own, and what it hears.
type listener struct {
	*Fleet[line]
	rdb       *redis.Client
	namespace string
	heard     map[string][]line // by worker
	first     chan string       // names of those that have begun
}

func listen(t *testing.T) *listener {
	t.Helper()
	rdb, namespace, cleanup, err := exampleredis.Open(t.Context())
	require.NoError(t, err)
	l := &listener{rdb: rdb, namespace: namespace, heard: map[string][]line{}, first: make(chan string, 10)}
	l.Fleet = New(rdb, func(worker string, said line) {
		if len(l.heard[worker]) == 0 {
			l.first <- worker
		}
		l.heard[worker] = append(l.heard[worker], said)
	})
	t.Cleanup(func() { l.Close(); cleanup() })
	return l
}

func (l *listener) start(t *testing.T, name, what string) {
	t.Helper()
	require.NoError(t, l.Start(t.Context(), name, what, l.namespace))
}

// begins returns when each of the workers has told its first line.
func (l *listener) begins(t *testing.T, workers ...string) {
	t.Helper()
	var names []string
	for range workers {
		select {
		case name := <-l.first:
			names = append(names, name)
		case <-time.After(30 * time.Second):
			require.Fail(t, "a worker says nothing", "%v of %v", names, workers)
		}
	}
	require.ElementsMatch(t, workers, names)
}

func TestAllThatAKilledWorkerToldIsHeard(t *testing.T) {
	t.Parallel()
	l := listen(t)
	for _, name := range []string{"a", "b"} {
		l.start(t, name, "count")
	}
	require.Equal(t, []string{"a", "b"}, l.Running())
	l.begins(t, "a", "b")
	require.NoError(t, l.Kill("a"))
	require.Equal(t, []string{"b"}, l.Running())
	require.NoError(t, l.Kill("b"))
	for name, lines := range l.heard {
		for i, said := range lines {
			require.Equal(t, line{N: i + 1}, said, "%s: in order, without a gap, and no farewell", name)
		}
	}
}

func TestAWorkerThatIsStoppedEndsByItself(t *testing.T) {
	t.Parallel()
	l := listen(t)
	for _, name := range []string{"a", "b"} {
		l.start(t, name, "count")
	}
	l.begins(t, "a", "b")
	require.NoError(t, l.Stop("a", "b"))
	for _, name := range []string{"a", "b"} {
		require.Equal(t, line{Bye: true}, l.heard[name][len(l.heard[name])-1], name)
	}
	require.ErrorContains(t, l.Stop("a"), "worker a does not run")
}

func TestAWorkerIsKilledWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, l.Start(ctx, "a", "persist", l.namespace))
	l.begins(t, "a")
	cancel()
	require.ErrorContains(t, l.Stop("a"), "killed")
}

func TestAWorkerUsesTheRedisOfItsParent(t *testing.T) {
	t.Parallel()
	l := listen(t)
	require.NoError(t, l.rdb.Set(t.Context(), l.namespace+":asked", 42, 0).Err())
	l.start(t, "a", "ask")
	l.begins(t, "a")
	require.NoError(t, l.Stop("a"))
	require.Equal(t, []line{{N: 42}}, l.heard["a"])
}

func TestWhatGoesWrongInAWorkerIsTheErrorOfStop(t *testing.T) {
	t.Parallel()
	l := listen(t)
	l.start(t, "a", "fail")
	l.start(t, "b", "babble")
	err := l.Stop("a", "b")
	require.ErrorContains(t, err, "worker a: exit status 1")
	require.ErrorContains(t, err, "worker b: it wrote what is no line of this fleet")
	require.Empty(t, l.Running())
}
