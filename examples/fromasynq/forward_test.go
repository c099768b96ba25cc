package main

import (
	"strings"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestATaskThatPawlRefusesKeepsNoOthersBack(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	client, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	tasks := asynq.NewClientFromRedisClient(rdb)
	for _, kind := range []string{"a", strings.Repeat("b", 256), "c"} {
		_, err := tasks.EnqueueContext(t.Context(), asynq.NewTask(kind, []byte(`{}`)))
		require.NoError(t, err)
	}
	f := forwarder{from: asynq.NewInspectorFromRedisClient(rdb), to: client.Queue("q")}
	moved, err := f.forward(t.Context(), "default")
	require.NoError(t, err)
	require.Equal(t, 3, moved)
	stats, err := f.to.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Ready)
	archived, err := f.from.ListArchivedTasks("default")
	require.NoError(t, err)
	require.Len(t, archived, 1)
}
