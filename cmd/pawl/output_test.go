package main

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// full is a file on a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// An error of a file has the methods of one of the network: what cannot be written is not
// a Redis that is away.
func TestAnOutputThatCannotBeWrittenIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.client.Queue("emails")
	_, err := q.EnqueueRaw(t.Context(), "k", make([]byte, 200<<10))
	require.NoError(t, err)
	for i := range 300 { // more than is written at once
		require.NoError(t, r.rdb.SAdd(t.Context(), "pawl:queues", fmt.Sprint("queue", i)).Err())
	}
	for _, line := range []string{"queues", "stats", "stats --watch", "jobs emails", "pause emails", "help"} {
		got := r.pawl(words(line), func(w *world) { w.out = io.Writer(full{}) })
		require.Equal(t, exitFailed, got.code, line)
		require.Equal(t, "pawl: the output could not be written: write /dev/stdout: no space left on device\n", got.err, line)
	}
}

// A queue with a damaged key does not hide the others.
func TestStatsHaveWhatCouldBeLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := r.client.Queue(name).EnqueueRaw(t.Context(), "k", []byte("1"))
		require.NoError(t, err)
	}
	require.NoError(t, r.rdb.Set(t.Context(), "pawl:{b}:meta", "x", 0).Err())
	got := r.pawl(words("stats --text"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "b first: WRONGTYPE")
	require.Regexp(t, `(?s)\na .*\nc `, got.out)
	require.NotContains(t, got.out, "\nb ")
}

// Who reads only that it failed would think that the jobs go on.
func TestAPauseAfterWhichNothingCanBeToldIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q := r.client.Queue("emails")
	_, err := q.EnqueueRaw(t.Context(), "k", []byte("1"))
	require.NoError(t, err)
	require.NoError(t, r.rdb.Set(t.Context(), "pawl:{emails}:prio", "x", 0).Err())
	got := r.pawl(words("pause emails"))
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "pawl: queue emails has been paused; ")
	require.Contains(t, got.err, "\npawl: stats emails: WRONGTYPE")
	require.NoError(t, r.rdb.Del(t.Context(), "pawl:{emails}:prio").Err())
	st, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.True(t, st.Paused)
}

// A pause that is over before it is told of is not one without an end.
func TestAPauseThatIsOverIsNoneWithoutAnEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.client.Queue("emails").EnqueueRaw(t.Context(), "k", []byte("1"))
	require.NoError(t, err)
	for range 20 {
		got := r.pawl(words("pause emails --json --for 1ns"))
		require.Equal(t, exitOK, got.code, got.err)
		require.NotContains(t, got.out, `"paused":true,"paused_until":null`)
	}
	r.await("emails", func(st pawl.Stats) bool { return !st.Paused })
}
