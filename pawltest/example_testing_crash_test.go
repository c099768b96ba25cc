package pawltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// region crash

// gateway takes one payment for a key, however often it is asked.
type gateway struct {
	asked    int
	payments map[string]int // the order, by key
	after    func()         // what happens once the money is taken
}

func (g *gateway) pay(_ context.Context, order int, key string) error {
	g.asked++
	g.payments[key] = order
	if g.after != nil {
		g.after()
	}
	return nil
}

func TestACrashAfterThePaymentPaysOnce(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		g := &gateway{payments: map[string]int{}}
		first, err := NewShop(env.Client, g.pay)
		require.NoError(t, err)
		require.NoError(t, first.Order(t.Context(), 7))

		g.after = func() { env.Crash(first.Payments) } // before Redis knows
		require.Empty(t, env.Drain(first.Payments).Runs)

		g.after = nil
		second, err := NewShop(env.Client, g.pay) // the program starts again
		require.NoError(t, err)
		report := env.Drain(second.Payments) // waits until the lease has run out
		require.Len(t, report.Runs, 1)
		require.Equal(t, 1, report.Runs[0].Job.Crashes)
		require.Equal(t, 1, report.Runs[0].Job.Attempt) // a crash spends none

		require.Equal(t, 2, g.asked)
		require.Len(t, g.payments, 1)
	})
}

// endregion

// region twice

func TestTwoRunsOfOneChargePayOnce(t *testing.T) {
	t.Parallel()
	g := &gateway{payments: map[string]int{}}
	shop := &Shop{Pay: g.pay}
	job := &pawl.Job[Charge]{Args: Charge{Order: 7}, RawJob: pawl.RawJob{ID: pawl.ID{1}}}
	require.NoError(t, shop.Charge(t.Context(), job))
	require.NoError(t, shop.Charge(t.Context(), job))
	require.Equal(t, 2, g.asked)
	require.Len(t, g.payments, 1)
}

// endregion

// region shutdown

func TestAShutdownGivesALongChargeBack(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		paying := make(chan struct{})
		shop, err := NewShop(env.Client, func(ctx context.Context, _ int, _ string) error {
			close(paying)
			<-ctx.Done() // a call that heeds its context
			return context.Cause(ctx)
		})
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- shop.Payments.Run(ctx) }() // as the program does
		<-paying
		stop()
		begin := time.Now()
		late, ok := errors.AsType[*pawl.DrainError](<-ended)
		require.True(t, ok)
		require.Len(t, late.Released, 1)
		require.Empty(t, late.Stuck)
		require.Equal(t, 25*time.Second, time.Since(begin).Round(time.Second)) // the DrainTimeout

		jobs := pawltest.Jobs[Charge](env, "payments")
		require.Len(t, jobs, 1)
		require.Zero(t, jobs[0].Attempt) // a shutdown spends none
	})
}

// endregion

// region timeout

func TestAHangingGatewayIsATimeout(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, func(ctx context.Context, _ int, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))
		env.Advance(time.Minute)

		report := env.DrainReady(shop.Payments) // the handler waits, so the clock moves
		require.ErrorIs(t, report.Runs[0].Err, pawl.ErrTimeout)
		require.Equal(t, time.Minute, report.Runs[0].Took)
		require.Len(t, pawltest.Jobs[Charge](env, "payments"), 1) // for its retry
	})
}

// endregion

// region cancel

func TestACancelledChargeStops(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		var cause error
		shop, err := NewShop(env.Client, func(ctx context.Context, _ int, _ string) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))
		id := pawltest.Jobs[Charge](env, "payments")[0].ID

		env.Start(shop.Payments) // runs while the test goes on
		env.Advance(time.Minute + 5*time.Second)
		require.NoError(t, env.Client.Queue("payments").Cancel(t.Context(), id))
		report := env.Drain(shop.Payments) // of a started worker: only waits

		require.ErrorIs(t, cause, pawl.ErrCancelled)
		require.ErrorIs(t, report.Runs[0].Err, pawl.ErrCancelled)
		require.Empty(t, report.Dead)
	})
}

// endregion

// region assert

func TestWhatAHandlerIsGiven(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, func(_ context.Context, order int, key string) error {
			assert.Equal(t, 7, order) // assert, not require
			assert.NotEmpty(t, key)
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))
		require.Len(t, env.Drain(shop.Payments).Runs, 1) // that it ran at all
	})
}

// endregion
