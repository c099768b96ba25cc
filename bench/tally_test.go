package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallyCountsDistinctJobs(t *testing.T) {
	t.Parallel()
	c := newTally(work{N: 20, FailEvery: 10, Late: true})
	for n := range 20 {
		err := c.run(parcel{Number: n, Due: now() - 5_000_000})
		require.Equal(t, n%10 == 0, errors.Is(err, errTry), "job %d", n)
	}
	require.NoError(t, c.run(parcel{Number: 3}), "again")
	o := c.outcome()
	require.Equal(t, 21, o.Runs)
	require.Equal(t, 18, distinct(o), "jobs 0 and 10 have only failed")
	require.EqualError(t, check(20, o), "18 distinct jobs ran, not 20")

	require.NoError(t, c.run(parcel{Number: 0}))
	require.NoError(t, c.run(parcel{Number: 10}))
	require.NoError(t, c.wait(t.Context(), 20))
	o = c.outcome()
	require.NoError(t, check(20, o))
	require.GreaterOrEqual(t, o.Late[1], int64(5_000_000))

	require.NoError(t, c.run(parcel{Number: 20}))
	require.EqualError(t, check(20, c.outcome()), "1 runs of jobs that were never enqueued")
}

func TestTalliesOfTwoProcessesAreOne(t *testing.T) {
	t.Parallel()
	one, two := newTally(work{N: 10}), newTally(work{N: 10})
	for n := range 10 {
		if n < 6 {
			require.NoError(t, one.run(parcel{Number: n}))
		}
		if n > 4 {
			require.NoError(t, two.run(parcel{Number: n}))
		}
	}
	text, err := json.Marshal(two.outcome())
	require.NoError(t, err)
	var back outcome
	require.NoError(t, json.Unmarshal(text, &back))
	require.NoError(t, check(10, one.outcome(), back), "job 5 counts once")
	require.Error(t, check(10, one.outcome()))
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	c := newTally(work{N: 2})
	ended := make(chan error, 1)
	go func() { ended <- c.wait(t.Context(), 2) }()
	require.NoError(t, c.run(parcel{Number: 0}))
	require.NoError(t, c.run(parcel{Number: 1}))
	require.NoError(t, <-ended)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, newTally(work{N: 1}).wait(ctx, 1), context.Canceled)

	c = newTally(work{N: 1})
	c.stopped(errTry)
	require.ErrorIs(t, c.wait(t.Context(), 1), errTry, "of a worker that has ended")
}
