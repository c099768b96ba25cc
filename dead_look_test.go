package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// listed is the dead jobs of queue mail that match.
func listedDead(t *testing.T, e *env, f pawl.DeadFilter) (found []pawl.DeadJob) {
	t.Helper()
	for d, err := range e.Queue("mail").Dead().List(t.Context(), f) {
		require.NoError(t, err)
		found = append(found, d)
	}
	return found
}

func idsOfDead(dead []pawl.DeadJob) (ids []pawl.ID) {
	for _, d := range dead {
		ids = append(ids, d.ID)
	}
	return ids
}

// perish has one job of queue mail die of each error.
func perish(t *testing.T, e *env, errs ...error) (ids []pawl.ID) {
	t.Helper()
	for i := range errs {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{i}, pawl.MaxAttempts(1))
		require.NoError(t, err)
		ids = append(ids, job.ID)
	}
	w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { return errs[job.Args.N] })
	e.Run(w, "dead", len(e.Log.Of("dead"))+len(errs))
	return ids
}

func TestTheBoundsOfAFilterAreExactToTheMillisecond(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		for range 3 {
			die(t, e, 1)
			<-time.After(3 * time.Millisecond)
		}
		all := listedDead(t, e, pawl.DeadFilter{})
		require.Len(t, all, 3)
		for i, d := range all {
			at := d.DiedAt
			require.Contains(t, d.Position, fmt.Sprint(at.UnixMilli(), "-"), "by the server's clock")
			require.Equal(t, idsOfDead(all[i:]), idsOfDead(listedDead(t, e, pawl.DeadFilter{Since: at})))
			require.Equal(t, idsOfDead(all[i+1:]), idsOfDead(listedDead(t, e, pawl.DeadFilter{Since: at.Add(1)})))
			require.Equal(t, idsOfDead(all[:i]), idsOfDead(listedDead(t, e, pawl.DeadFilter{Until: at})))
			require.Equal(t, idsOfDead(all[:i+1]), idsOfDead(listedDead(t, e, pawl.DeadFilter{Until: at.Add(1)})))
			require.Equal(t, []pawl.ID{d.ID}, idsOfDead(listedDead(t, e, pawl.DeadFilter{Since: at, Until: at.Add(time.Millisecond)})))
			require.Empty(t, listedDead(t, e, pawl.DeadFilter{Since: at, Until: at}))
		}
		require.Empty(t, listedDead(t, e, pawl.DeadFilter{Until: time.Unix(0, 0)}))
		require.Empty(t, listedDead(t, e, pawl.DeadFilter{Until: time.Unix(-1, 0)}))
		require.Empty(t, listedDead(t, e, pawl.DeadFilter{Since: time.Now().AddDate(5000, 0, 0)}))
		require.Len(t, listedDead(t, e, pawl.DeadFilter{Since: time.Unix(-1, 0), Until: time.Now().AddDate(5000, 0, 0), Limit: -1}), 3)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{Limit: 3}), 3)
	})
}

func TestAFilterThatMatchesNothingIsNoError(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		die(t, e, 2)
		d, ctx := e.Queue("mail").Dead(), t.Context()
		for _, f := range []pawl.DeadFilter{{Kind: "other"}, {Reason: pawl.ReasonCrashed}, {Error: "Failure"},
			{Fingerprint: "0123456789abcdef"}, {Since: time.Now().Add(time.Hour)}, {Until: time.Now().Add(-time.Hour)}} {
			require.Empty(t, listedDead(t, e, f))
			n, err := d.Purge(ctx, f)
			require.NoError(t, err)
			require.Zero(t, n)
			report, err := d.RedriveAll(ctx, f, pawl.Redrive{Over: time.Hour})
			require.NoError(t, err)
			require.Zero(t, report)
		}
	})
}

// What is no fingerprint matches nothing, which would look as if nothing were dead.
func TestWhatIsNoFingerprintIsAnError(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		die(t, e, 1)
		d, ctx := e.Queue("mail").Dead(), t.Context()
		for _, text := range []string{" ", "x", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg", "0123456789abcdef\n", "failure in mail"} {
			f := pawl.DeadFilter{Fingerprint: text}
			errs := map[string]error{}
			for _, errs["list"] = range d.List(ctx, f) {
			}
			_, errs["purge"] = d.Purge(ctx, f)
			_, errs["redrive"] = d.RedriveAll(ctx, f, pawl.Redrive{})
			_, errs["dry run"] = d.RedriveAll(ctx, f, pawl.Redrive{DryRun: true})
			for call, err := range errs {
				require.ErrorIs(t, err, pawl.ErrInvalid, "%s by %q", call, text)
				require.ErrorContains(t, err, "is no fingerprint", call)
			}
		}
	})
}

func TestTheDeadOfAQueueThatIsNotThere(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		calls := func(d *pawl.DeadLetters) map[string]error {
			errs := map[string]error{}
			for _, errs["list"] = range d.List(ctx, pawl.DeadFilter{}) {
			}
			_, errs["groups"] = d.Groups(ctx)
			_, errs["purge"] = d.Purge(ctx, pawl.DeadFilter{})
			_, errs["delete"] = d.Delete(ctx, pawl.ID{})
			_, errs["delete of none"] = d.Delete(ctx)
			_, errs["redrive all"] = d.RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
			_, errs["dry run"] = d.RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{DryRun: true})
			_, errs["get"] = d.Get(ctx, pawl.ID{})
			_, errs["redrive"] = d.Redrive(ctx, pawl.ID{})
			errs["redrive with"] = d.RedriveWith(ctx, pawl.ID{}, note{1})
			return errs
		}
		for name, err := range calls(e.Client.Queue("never").Dead()) {
			require.ErrorIs(t, err, pawl.ErrNotFound, name)
		}
		for name, err := range calls(e.Client.Queue("no good").Dead()) {
			require.ErrorIs(t, err, pawl.ErrName, name)
		}
		n, err := e.Client.Queue("never").Dead().Len(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = e.Client.Queue("no good").Dead().Len(ctx)
		require.ErrorIs(t, err, pawl.ErrName)
		for _, err := range e.Client.Queue("no good").Dead().Watch(ctx, "") {
			require.ErrorIs(t, err, pawl.ErrName)
		}
	})
}

func TestGroupsAreSortedAndCanBeFilteredBy(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		perish(t, e, fmt.Errorf("order 1 not found"), fmt.Errorf("card declined"), fmt.Errorf("order 22 not found"),
			pawl.Permanent(fmt.Errorf("order 333 not found")))
		all := listedDead(t, e, pawl.DeadFilter{})
		d, ctx := e.Queue("mail").Dead(), t.Context()
		groups, err := d.Groups(ctx)
		require.NoError(t, err)
		require.Len(t, groups, 2)
		require.Equal(t, pawl.DeadGroup{Kind: "note", Fingerprint: groups[0].Fingerprint, Example: "order 333 not found",
			Count: 3, First: all[0].DiedAt, Last: all[3].DiedAt}, groups[0])
		require.Equal(t, "card declined", groups[1].Example)
		require.Empty(t, groups[0].Reason, "they died of several")
		require.Equal(t, pawl.ReasonExhausted, groups[1].Reason)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{Fingerprint: groups[0].Fingerprint}), 3)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{Fingerprint: groups[0].Fingerprint, Reason: pawl.ReasonPermanent}), 1)
		n, err := d.Purge(ctx, pawl.DeadFilter{Fingerprint: groups[0].Fingerprint, Limit: 2})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{}), 2)
		n, err = d.Purge(ctx, pawl.DeadFilter{})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		groups, err = d.Groups(ctx)
		require.NoError(t, err)
		require.Empty(t, groups)
	})
}

// replies counts the bytes of the largest answer to a script.
type replies struct{ largest, calls atomic.Int64 }

func (*replies) DialHook(next redis.DialHook) redis.DialHook                               { return next }
func (*replies) ProcessPipelineHook(n redis.ProcessPipelineHook) redis.ProcessPipelineHook { return n }
func (r *replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(interface{ Val() any }); ok && cmd.Name() == "evalsha" {
			r.calls.Add(1)
			r.largest.Store(max(r.largest.Load(), int64(len(fmt.Sprint(c.Val())))))
		}
		return err
	}
}

func TestAPageIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		const size, small, large = 200 << 10, 600, 20
		q := e.Queue("mail")
		for i := range small + large { // the large ones come when a page has grown
			payload := []byte("1")
			if i >= small {
				payload = make([]byte, size)
			}
			_, err := q.EnqueueRaw(t.Context(), "raw", payload)
			require.NoError(t, err)
		}
		w := e.Worker("mail", pawl.WorkerConfig{})
		w.HandleRaw("raw", func(context.Context, *pawl.RawJob) error { return pawl.Permanent(fmt.Errorf("no")) })
		e.Run(w, "dead", small+large)
		sizes := &replies{}
		e.App.AddHook(sizes)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{}), small+large)
		require.Less(t, sizes.largest.Load(), int64(1_000_000+2*size))
		require.Less(t, sizes.calls.Load(), int64(10))
		report, err := q.Dead().RedriveAll(t.Context(), pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, small+large, report.Moved)
	})
}

// While jobs die, are redriven, deleted and listed, nobody sees one twice, and
// no call fails.
func TestAWalkSeesWhatWasDeadWhenItBegan(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ids := die(t, e, 120)
		d, ctx := e.Queue("mail").Dead(), t.Context()
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 4})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return fmt.Errorf("again") })
		stop := e.Start(w)
		var others sync.WaitGroup
		others.Go(func() {
			for _, id := range ids[:60] {
				_, err := d.Redrive(ctx, id)
				if err != nil {
					require.ErrorIs(t, err, pawl.ErrNotFound)
				}
			}
		})
		others.Go(func() {
			for _, id := range ids[60:90] {
				_, err := d.Delete(ctx, id)
				require.NoError(t, err)
			}
		})
		for range 20 {
			seen := map[pawl.ID]bool{}
			for job, err := range d.List(ctx, pawl.DeadFilter{}) {
				require.NoError(t, err)
				require.False(t, seen[job.ID])
				seen[job.ID] = true
			}
			for _, id := range ids[90:] {
				require.True(t, seen[id], "nobody touched it")
			}
			_, err := d.Groups(ctx)
			require.NoError(t, err)
		}
		others.Wait()
		n, err := d.Purge(ctx, pawl.DeadFilter{Limit: 10})
		require.NoError(t, err)
		require.LessOrEqual(t, n, 10)
		require.NoError(t, stop())
	})
}
