package pawltest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// BenchmarkDrain is a job from its enqueue to the report of its run.
func BenchmarkDrain(b *testing.B) {
	env := pawltest.New(b, pawl.Config{})
	w := worker(b, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error { return nil })
	for b.Loop() {
		enqueue(b, env, "emails", welcome{1})
		require.Len(b, env.Drain(w).Runs, 1)
	}
}
