package pawltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// The tests of example_testing_*_test.go are what docs/testing.md shows.

// region shop

// Charge is the job of paying for an order.
type Charge struct {
	Order int `json:"order"`
}

func (Charge) Kind() string { return "charge" }

// Receipt is the job of writing to the customer.
type Receipt struct {
	Order int `json:"order"`
}

func (Receipt) Kind() string { return "receipt" }

var errDeclined = errors.New("card declined")

// Shop is the service. All it needs of pawl is the client.
type Shop struct {
	Client           *pawl.Client
	Payments, Emails *pawl.Worker
	Pay              func(ctx context.Context, order int, key string) error // the gateway
}

func NewShop(client *pawl.Client, pay func(context.Context, int, string) error) (*Shop, error) {
	payments, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments")})
	if err != nil {
		return nil, err
	}
	emails, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	if err != nil {
		return nil, err
	}
	s := &Shop{Client: client, Payments: payments, Emails: emails, Pay: pay}
	pawl.Handle(payments, s.Charge, pawl.Timeout(time.Minute))
	pawl.Handle(emails, func(context.Context, *pawl.Job[Receipt]) error { return nil })
	return s, nil
}

// Order takes an order. A customer who clicks twice pays once.
func (s *Shop) Order(ctx context.Context, order int) error {
	if order <= 0 {
		return errors.New("no such order")
	}
	once := pawl.Unique{Key: pawl.Key("order", order), For: 24 * time.Hour}
	_, err := s.Client.Queue("payments").Enqueue(ctx, Charge{order}, once, pawl.Delay(time.Minute))
	return err
}

// Charge handles a Charge.
func (s *Shop) Charge(ctx context.Context, job *pawl.Job[Charge]) error {
	err := s.Pay(ctx, job.Args.Order, job.IdempotencyKey())
	if errors.Is(err, errDeclined) {
		return pawl.Permanent(err)
	}
	if err != nil || job.Client() == nil { // a literal has no client
		return err
	}
	_, err = job.Client().Queue("emails").Enqueue(ctx, Receipt{job.Args.Order})
	return err
}

// endregion

// paid is a gateway that takes every payment.
func paid(context.Context, int, string) error { return nil }

// region alone

func TestChargeTellsADeclinedCardFromAnOutage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer    error
		permanent bool
	}{
		"paid":     {nil, false},
		"declined": {errDeclined, true},
		"outage":   {errors.New("503"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := &Shop{Pay: func(context.Context, int, string) error { return tc.answer }}
			err := shop.Charge(t.Context(), &pawl.Job[Charge]{Args: Charge{Order: 7}})
			require.ErrorIs(t, err, tc.answer) // through Permanent, too
			require.Equal(t, tc.permanent, pawl.IsPermanent(err))
		})
	}
}

// endregion

// region literal

func TestTheKeyGoesToTheGateway(t *testing.T) {
	t.Parallel()
	var got string
	shop := &Shop{Pay: func(_ context.Context, _ int, key string) error { got = key; return nil }}
	job := &pawl.Job[Charge]{
		Args:   Charge{Order: 7},
		RawJob: pawl.RawJob{ID: pawl.ID{1}, Attempt: 8, MaxAttempts: 8},
	}
	require.True(t, job.LastAttempt())
	require.NoError(t, shop.Charge(t.Context(), job))
	require.Equal(t, job.ID.String(), got)
}

// endregion

// region enqueues

func TestAnOrderIsChargedAMinuteLater(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, paid)
		require.NoError(t, err)

		require.Error(t, shop.Order(t.Context(), 0))
		pawltest.RequireNone[pawl.Args](env, "payments") // of any type

		require.NoError(t, shop.Order(t.Context(), 7))
		require.NoError(t, shop.Order(t.Context(), 7)) // twice: one job
		pawltest.RequireEnqueued(env, "payments", Charge{Order: 7}, pawl.Delay(time.Minute))

		jobs := pawltest.Jobs[Charge](env, "payments") // for all else that there is to ask
		require.Len(t, jobs, 1)
		require.Equal(t, time.Minute, time.Until(jobs[0].DueAt).Round(time.Second))
	})
}

// endregion

// region outcomes

func TestAHandlerThatPutsItsJobOff(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		payments := env.Client.Queue("payments")
		w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("payments")})
		require.NoError(t, err)
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
			switch job.Args.Order {
			case 1:
				return pawl.Snooze(time.Hour)
			case 2:
				return pawl.RetryAfter(10*time.Minute, errors.New("busy"))
			}
			return pawl.Discard(errors.New("paid already"))
		})
		_, err = payments.EnqueueMany(t.Context(), pawl.Items([]Charge{{1}, {2}, {3}}))
		require.NoError(t, err)
		env.DrainReady(w)

		jobs := pawltest.Jobs[Charge](env, "payments")
		require.Len(t, jobs, 2)
		require.Equal(t, time.Hour, time.Until(jobs[0].DueAt))
		require.Zero(t, jobs[0].Attempt) // a snooze spends none
		require.Equal(t, 10*time.Minute, time.Until(jobs[1].DueAt))
		require.Equal(t, 1, jobs[1].Attempt)
		require.Equal(t, "busy", jobs[1].LastError)

		stats, err := payments.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, stats.Total.Discarded)
	})
}

// endregion

// region outage

func TestAChargeOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		shop, err := NewShop(env.Client, func(context.Context, int, string) error {
			if time.Since(start) < 40*time.Minute {
				return errors.New("503")
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))

		require.Empty(t, env.DrainReady(shop.Payments).Runs) // it is due in a minute
		env.Advance(time.Minute)
		require.Len(t, env.DrainReady(shop.Payments).Runs, 1) // its retry is not due

		report := env.Drain(shop.Payments) // all the rest, an hour at most
		require.Empty(t, report.Dead)
		last := report.Runs[len(report.Runs)-1]
		require.NoError(t, last.Err)
		require.Greater(t, last.Job.Attempt, 4)
		pawltest.RequireEnqueued(env, "emails", Receipt{Order: 7})
	})
}

// endregion

// region dead

func TestADeclinedChargeIsSentBackWithANewCard(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		answer := errDeclined
		shop, err := NewShop(env.Client, func(context.Context, int, string) error { return answer })
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))
		env.Drain(shop.Payments)

		dead := pawltest.RequireDead(env, "payments", Charge{Order: 7})
		require.Equal(t, pawl.ReasonPermanent, dead.Reason)
		require.Len(t, dead.Errors, 1) // one attempt, no retry
		require.Equal(t, "card declined", dead.Error)

		answer = nil
		moved, err := env.Client.Queue("payments").Dead().Redrive(t.Context(), dead.ID)
		require.NoError(t, err)
		require.Equal(t, 1, moved.Moved) // or a holder of its unique key is in Refused
		report := env.DrainReady(shop.Payments)
		require.Len(t, report.Runs, 1)
		require.NoError(t, report.Runs[0].Err)
		require.Equal(t, 1, report.Runs[0].Job.Redrives)
	})
}

// endregion
