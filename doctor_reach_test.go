package pawl_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestDoctorOfAServerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := pawl.New(impatient(t, s), pawl.Config{})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found, err := c.Doctor(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "pawl: doctor: ")
	require.Empty(t, found)

	s.Pause()
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Doctor(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s.Resume()

	s.Kill()
	before := time.Now()
	_, err = c.Doctor(t.Context())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "refused", "it says why")
	require.Less(t, time.Since(before), 30*time.Second)

	_, err = (*pawl.Client)(nil).Doctor(t.Context())
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

func TestDoctorWithoutAPasswordIsAnError(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t, "--requirepass", "secret").Client(t)
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	_, err = c.Doctor(t.Context())
	require.ErrorContains(t, err, "NOAUTH")
}

func TestDoctorLooksAtEachMasterOfACluster(t *testing.T) {
	t.Parallel()
	cluster := func(from, to string) (*redistest.Server, *redis.Client) {
		s := sound(t, "--cluster-enabled", "yes")
		rdb := s.Client(t)
		require.NoError(t, rdb.Do(t.Context(), "cluster", "addslotsrange", from, to).Err())
		return s, rdb
	}
	a, onA := cluster("0", "8191")
	b, onB := cluster("8192", "16383")
	require.NoError(t, onB.Do(t.Context(), "cluster", "set-config-epoch", "2").Err())
	require.NoError(t, onA.ClusterMeet(t.Context(), "127.0.0.1", b.Addr()[len("127.0.0.1:"):]).Err())
	for _, rdb := range []*redis.Client{onA, onB} {
		redistest.Eventually(t, "the cluster is whole", func(ctx context.Context) bool {
			info, err := rdb.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2")
		})
	}
	// A wide pool: after as many failed dials go-redis goes on dialling by itself.
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{a.Addr()}, PoolSize: 1000})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, f := range findings(t, rdb) {
		requireOK(t, f)
		require.NotContains(t, f.Text, "127.0.0.1")
	}
	set(t, onB, "maxmemory-policy", "allkeys-lru")
	found := findings(t, rdb)
	requireBad(t, found["maxmemory-policy"], b.Addr())
	require.NotContains(t, found["maxmemory-policy"].Text, a.Addr())
	requireOK(t, found["cluster"])

	requireBad(t, findings(t, onA)["cluster"], "MOVED", "NewClusterClient")

	b.Kill()
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	list, err := c.Doctor(t.Context())
	require.NoError(t, err, "a part of the cluster was reached")
	for i, f := range list {
		require.Equal(t, doctorChecks[i], f.Check)
		switch f.Check {
		case "cluster":
			requireBad(t, f, b.Addr()+": this master cannot be reached")
		case "version":
			requireUnknown(t, f, b.Addr())
		}
	}
}

func TestDoctorFindsAClusterThatIsNotWhole(t *testing.T) {
	t.Parallel()
	s := sound(t, "--cluster-enabled", "yes")
	require.NoError(t, s.Client(t).Do(t.Context(), "cluster", "addslotsrange", "0", "16000").Err())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	found := findings(t, rdb)
	requireBad(t, found["cluster"], "CLUSTERDOWN")
	requireUnknown(t, found["rights"], "CLUSTERDOWN")
}

// warnings keeps what is logged at Warn, and tells that a line came.
type warnings struct {
	slog.Handler
	came chan struct{}
	mu   sync.Mutex
	of   []string // the checks
	text []string // what was said of each
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "pawl: the server's settings would hurt" {
		r.Attrs(func(a slog.Attr) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch a.Key {
			case "check":
				w.of = append(w.of, a.Value.String())
			case "text":
				w.text = append(w.text, a.Value.String())
				w.came <- struct{}{}
			}
			return true
		})
	}
	return nil
}

func TestTheFirstWorkerWarnsOfWhatHurts(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil) // with INFO and CONFIG
	log := &warnings{Handler: slog.DiscardHandler, came: make(chan struct{}, 100)}
	e.Client = e.NewClient(pawl.Config{Logger: slog.New(log)})
	set(t, e.Redis, "maxmemory-policy", "allkeys-lru")
	for i := range 2 {
		w := e.Worker("emails", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
		stop := e.Start(w)
		if i == 0 {
			for range 3 {
				<-log.came
			}
		}
		_, err := e.Queue("emails").Enqueue(t.Context(), Welcome{UserID: 42})
		require.NoError(t, err)
		e.Log.Wait(t, "done", i+1)
		require.NoError(t, stop())
	}
	require.Equal(t, []string{"maxmemory-policy", "maxmemory", "appendonly"}, log.of)
}

// A user who may not look hears that nobody did: silence is not "all is well".
func TestTheFirstWorkerSaysWhatItCouldNotLookAt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnvAs(t, s.Client(t), logIn(t, s, s.Addr(), 0), nil) // as the user of docs/security.md
	var log notes
	e.Client = e.NewClient(pawl.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := e.Worker("emails", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	e.Start(w)
	redistest.Eventually(t, "it says so", func(context.Context) bool {
		return log.count("could not be looked at") == 1 && log.count("maxmemory-policy") == 1
	})
	require.Zero(t, log.count("would hurt"))
}

func TestAWorkerThatStopsAtOnceLeavesTheLookToTheNext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	log := &warnings{Handler: slog.DiscardHandler, came: make(chan struct{}, 100)}
	e := newEnv(t, s.Client(t), nil)
	e.Client = e.NewClient(pawl.Config{Logger: slog.New(log)})
	worker := func() *pawl.Worker {
		w := e.Worker("emails", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
		return w
	}
	s.Pause()
	stop := e.Start(worker())
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	s.Resume() // the drain needs the server
	require.NoError(t, <-ended)
	e.Start(worker())
	<-log.came
}

// impatient is a client that tries once, and never dials by itself.
func impatient(t *testing.T, s *redistest.Server) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1, PoolSize: 1000})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
