package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// behindOthers has jobs replaced, and wait behind others that fail, are done, die, and
// vanish by a hand edit: in a queue of its own.
func behindOthers(t *testing.T, ctx context.Context, f *faulty) {
	t.Helper()
	q := f.Queue("p")
	put := func(n int, opts ...pawl.Option) pawl.ID {
		opts = append(opts, pawl.Unique{Key: "k", OnDuplicate: pawl.RunLatestAfter})
		job, err := q.Enqueue(ctx, note{n}, opts...)
		require.NoError(t, err)
		return job.ID
	}
	outcomes := map[int]error{2: errors.New("no"), 4: nil, 5: pawl.Permanent(errors.New("no"))}
	started, gate := make(chan int), make(chan bool)
	work := func(ctx context.Context, job *pawl.Job[note]) error {
		err, waits := outcomes[job.Args.N]
		if waits {
			started <- job.Args.N
			<-gate
		}
		return err
	}
	ended := func(n int64) {
		redistest.Eventually(t, "the last one has run", func(context.Context) bool { return f.Total(t, "p").Done == n })
	}
	put(1)
	put(2)
	w := f.Worker("p", pawl.WorkerConfig{})
	pawl.Handle(w, work)
	stop := f.Start(w)
	require.Equal(t, 2, <-started)
	put(3)
	put(4)
	gate <- true
	require.Equal(t, 4, <-started)
	require.NoError(t, q.Cancel(ctx, put(6)))
	put(5)
	gate <- true
	require.Equal(t, 5, <-started)
	put(6)
	_, err := q.Purge(ctx, pawl.StateParked, pawl.Filter{})
	require.NoError(t, err)
	put(7)
	gate <- true
	ended(2)
	require.NoError(t, stop())

	put(8, pawl.Delay(time.Millisecond))
	members := f.Direct.ZRange(ctx, "pawl:{p}:due", 0, -1).Val()
	require.Len(t, members, 1)
	require.NoError(t, f.Direct.ZAddXX(ctx, "pawl:{p}:due", redis.Z{Score: 1e15 + 1, Member: members[0]}).Err())
	require.NoError(t, f.Direct.HDel(ctx, "pawl:{p}:meta", "mend").Err())
	w = f.Worker("p", pawl.WorkerConfig{})
	pawl.Handle(w, work)
	stop = f.Start(w)
	ended(3)
	require.NoError(t, stop())
}
