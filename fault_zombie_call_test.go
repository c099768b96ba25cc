package pawl_test

import (
	"context"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// zombieCalls are the calls of a worker about a job it holds, with a handler
// that leads to them, what the worker tells of one that was accepted, and what
// that one counts.
var zombieCalls = map[string]struct {
	do, tells string
	counts    pawl.Counters
}{
	"settle":  {"nothing", "done", pawl.Counters{Done: 1}},
	"retry":   {"fail", "retry", pawl.Counters{Failed: 1, Retried: 1}},
	"bury":    {"give up", "dead", pawl.Counters{Failed: 1, Dead: 1}},
	"release": {"heed", "released", pawl.Counters{Released: 1}},
	"extend":  {"ignore", "", pawl.Counters{}},

	"progress": {"tell", "", pawl.Counters{}},
}

// zombie is a worker that was frozen for twice its visibility timeout just when
// it had sent its first call of a verb. The call is kept in the network: wake
// lets it arrive, and then the worker, which sends it again.
type zombie struct {
	*faulty
	p    *process
	verb string
}

func newZombie(t *testing.T, server *redistest.Server, verb, do string) *zombie {
	t.Helper()
	const visibility = 500 * time.Millisecond
	f := behindProxy(t, server, 0)
	f.put(t, "q", 1)
	f.Proxy.On(verb, 0, redistest.Drop) // what it sends until it is frozen
	kept := f.Proxy.On(verb, 1, redistest.Late)
	p := victim{Addr: f.Proxy.Addr(), Queue: "q", Visibility: visibility, Drain: time.Millisecond, Do: do}.run(t)
	require.True(t, p.await("started"))
	if verb == "release" {
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	}
	came(t, "its call", kept)
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	<-time.After(2 * visibility)
	return &zombie{f, p, verb}
}

// arrive lets the kept call arrive.
func (z *zombie) arrive(t *testing.T) {
	t.Helper()
	require.NotEmpty(t, z.Proxy.Release()[0], "it was answered")
}

// wake thaws the worker and returns when its own call was answered.
func (z *zombie) wake(t *testing.T) {
	t.Helper()
	z.Proxy.Clear()
	answered := z.Proxy.On(z.verb, z.Proxy.Calls(z.verb)+1, redistest.Delay(0))
	require.NoError(t, z.p.Process.Signal(syscall.SIGCONT))
	came(t, "the answer of its own call", answered)
}

// other is a worker past the proxy, whose handler ends when free is closed.
func (z *zombie) other(t *testing.T, free <-chan struct{}) (stop func() error) {
	t.Helper()
	// So long a lease that no renewal is among what is compared.
	w, err := pawl.NewWorker(z.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), Concurrency: 1, VisibilityTimeout: time.Hour})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
		<-free
		return nil
	})
	stop = z.Start(w)
	require.Equal(t, 1, z.Log.Wait(t, "started", 1)[0].Job.Crashes)
	return stop
}

var crashOf = regexp.MustCompile(`\|1\|r\|[^|"]*`) // crashes, flags, the token before

// W2, case 3. Its lease is another's, or the job is done: whatever the frozen
// worker had sent, and whatever it sends when it comes back, is lost. What it is
// told is ErrLeaseLost.
func TestEveryCallOfAZombieIsLost(t *testing.T) {
	t.Parallel()
	for verb, call := range zombieCalls {
		t.Run(verb+", when another has finished its job", func(t *testing.T) {
			t.Parallel()
			z := newZombie(t, redistest.Start(t), verb, call.do)
			free := make(chan struct{})
			close(free)
			stop := z.other(t, free)
			z.Log.Wait(t, "done", 1)
			require.NoError(t, stop())
			before := layout(t, z.env, "q")
			z.arrive(t)
			require.Equal(t, before, layout(t, z.env, "q"))
			z.wake(t)
			require.True(t, z.p.await("lost "+pawl.ErrLeaseLost.Error()))
			require.Equal(t, before, layout(t, z.env, "q"))
			require.Equal(t, pawl.Counters{Enqueued: 1, Started: 2, Crashed: 1, Done: 1}, z.run(t, "q"))
		})
		t.Run(verb+", while another runs its job", func(t *testing.T) {
			t.Parallel()
			z := newZombie(t, redistest.Start(t), verb, call.do)
			free := make(chan struct{})
			stop := z.other(t, free)
			want := layout(t, z.env, "q")
			// A holder that calls is alive: its crash is taken back, once.
			require.Regexp(t, crashOf, want["pawl:{q}:runs"])
			want["pawl:{q}:runs"] = crashOf.ReplaceAllString(want["pawl:{q}:runs"], "|0|r|")
			z.arrive(t)
			require.Equal(t, want, layout(t, z.env, "q"))
			z.wake(t)
			require.True(t, z.p.await("lost "+pawl.ErrLeaseLost.Error()))
			require.Equal(t, want, layout(t, z.env, "q"))
			close(free)
			z.Log.Wait(t, "done", 1)
			require.NoError(t, stop())
			require.Equal(t, pawl.Counters{Enqueued: 1, Started: 2, Crashed: 1, Done: 1}, z.run(t, "q"))
		})
	}
}

// W3. Nobody took its job: late but still current is accepted, once.
func TestALateCallOfTheHolderIsAccepted(t *testing.T) {
	t.Parallel()
	for verb, call := range zombieCalls {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			z := newZombie(t, redistest.Start(t), verb, call.do)
			before := layout(t, z.env, "q")
			z.arrive(t)
			after := layout(t, z.env, "q")
			require.NotEqual(t, before, after)
			z.wake(t)
			want := call.counts
			want.Enqueued, want.Started = 1, 1
			if verb == "extend" || verb == "progress" {
				require.True(t, z.p.await("cause "+pawl.ErrLeaseLost.Error()), "its handler was told all the same")
				require.EqualValues(t, 1, z.Direct.ZCard(t.Context(), "pawl:{q}:leases").Val())
			} else {
				require.True(t, z.p.await(call.tells))
				require.Equal(t, after, layout(t, z.env, "q"), "its own repeat changes nothing")
			}
			got := z.run(t, "q")
			if verb == "release" {
				require.Positive(t, z.Total(t, "q").Released)
				got.Started, got.Released = 1, 1
			}
			if verb == "progress" && got.Crashed == 1 { // it renews nothing: the job was taken again
				got.Started, got.Crashed = got.Started-1, 0
			}
			require.Equal(t, want, got)
		})
	}
}
