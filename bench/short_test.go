package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestShort is the whole of it, of pawl and of those that need nothing but Redis.
func TestShort(t *testing.T) {
	t.Parallel()
	needRedis(t)
	for _, systems := range []string{"pawl,raw", "asynq-4"} {
		t.Run(systems, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			path := filepath.Join(t.TempDir(), "r.json")
			var table, progress bytes.Buffer
			err := bench(ctx, []string{"-short", "-systems", systems, "-json", path}, &table, &progress)
			require.NoError(t, err, progress.String())
			r, err := readJSON(path)
			require.NoError(t, err)
			rows := map[string]int{} // by system and workload
			for _, res := range r.Results {
				rows[res.System+" "+res.Workload]++
				require.Len(t, res.Rounds, 1, res.Title)
				// An idle worker may well do nothing in the two seconds of a short run.
				if res.Metric != "early" && res.Workload != "quiescent" {
					require.Positive(t, res.Median, "%s: %s, of %s", res.Title, res.Metric, res.System)
				}
			}
			for _, w := range workloads() {
				for name := range strings.SplitSeq(systems, ",") {
					if systemNamed(name).meets(w.needs) {
						require.Equal(t, len(w.metrics), rows[name+" "+w.name], "%s of %s", w.name, name)
					}
				}
			}
		})
	}
}

func TestASessionInAnotherProcess(t *testing.T) {
	t.Parallel()
	needRedis(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at, err := redisStore(ctx)
	require.NoError(t, err)
	t.Cleanup(at.close)
	s, err := spawnSelf("pawl")(ctx, at.at)
	require.NoError(t, err)
	require.NoError(t, s.enqueue(ctx, load{N: 50, Bytes: payload}))
	st, err := s.state(ctx)
	require.NoError(t, err)
	require.Equal(t, state{Left: 50}, st)
	_, err = s.(worker).stop(ctx)
	require.EqualError(t, err, "stop: out of order")
	w, err := s.work(ctx, work{Slots: 10, N: 50, FailEvery: 10})
	require.NoError(t, err)
	require.NoError(t, w.wait(ctx, 50))
	o, err := w.stop(ctx)
	require.NoError(t, err)
	require.NoError(t, check(50, o))
	require.Equal(t, 55, o.Runs)
	require.NoError(t, s.close(ctx))

	_, err = s.state(ctx)
	require.Error(t, err, "the process has ended")
	_, err = startRemote(ctx, exec.Command("false"), at.at)
	require.Error(t, err)
}

func TestAChildIsToldWhatItCannotDo(t *testing.T) {
	t.Parallel()
	ask := strings.NewReader(`{"op":"state"}` + "\n" + `{"op":"open"}` + "\n" + `{"op":"dance"}` + "\n")
	var out bytes.Buffer
	require.NoError(t, child(t.Context(), "pawl", ask, &out), "until nobody asks")
	decoder := json.NewDecoder(&out)
	for _, want := range []string{"out of order", "", `no operation "dance"`} {
		var a reply
		require.NoError(t, decoder.Decode(&a))
		require.Equal(t, want, a.Error)
	}
	require.Error(t, child(t.Context(), "nobody", strings.NewReader(""), io.Discard))
	require.Error(t, child(t.Context(), "pawl", strings.NewReader("{\n"), io.Discard))
}
