package pawl_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// E5. In a cluster the published user needs the rights that the page adds for it,
// and no others.
func TestThePublishedUserInACluster(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	more := regexp.MustCompile(`(?m)^\+cluster\|slots.*$`).FindString(string(page))
	require.NotEmpty(t, more)

	s := sound(t, "--cluster-enabled", "yes")
	admin := s.Client(t)
	require.NoError(t, admin.Do(t.Context(), "cluster", "addslotsrange", "0", "16383").Err())
	redistest.Eventually(t, "the cluster is whole", func(ctx context.Context) bool {
		return strings.Contains(admin.ClusterInfo(ctx).Val(), "cluster_state:ok")
	})
	s.SetUser(t, "pawl", append(rules(t, "pawl"), strings.Fields(more)...)...)
	refusedNothing(t, admin)
	one := clientAs(t, "pawl", s.Addr(), 0).Options()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr()}, Username: one.Username, Password: one.Password})
	t.Cleanup(func() { _ = rdb.Close() })

	log := newRecorder(false)
	c, err := pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{log}})
	require.NoError(t, err)
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("a", "b")})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	for _, name := range []string{"a", "b"} {
		_, err := c.Queue(name).Enqueue(t.Context(), note{})
		require.NoError(t, err)
	}
	log.Wait(t, "done", 2)
	cancel()
	require.NoError(t, <-ran)
	found, err := c.Queue("a").Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, c.Queue("b").Destroy(t.Context()))
}
