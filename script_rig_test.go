package pawl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// The scripts are called here as the client and the worker call them, but by
// hand: with any token, sequence and order of calls that the library would
// never make, or only after a lost packet.

// A rig is one queue, on a server that it may share with other rigs.
type rig struct {
	t    *testing.T
	rdb  *redis.Client
	mini *miniredis.Miniredis // nil on a real server
	k    keyspace
	q    *Queue
}

var rigs atomic.Int64

// onServers runs fn on miniredis and on a redis-server, each of which is fn's
// alone; open makes a queue on it.
func onServers(t *testing.T, fn func(t *testing.T, open func(*testing.T) *rig)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), PoolSize: 64})
		t.Cleanup(func() { _ = rdb.Close() })
		fn(t, func(t *testing.T) *rig { return openRig(t, rdb, m) })
	})
	onServer(t, fn)
}

func onServer(t *testing.T, fn func(t *testing.T, open func(*testing.T) *rig)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		rdb := redistest.Start(t).Client(t)
		fn(t, func(t *testing.T) *rig { return openRig(t, rdb, nil) })
	})
}

func openRig(t *testing.T, rdb *redis.Client, m *miniredis.Miniredis) *rig {
	t.Helper()
	c, err := New(rdb, Config{})
	require.NoError(t, err)
	q := c.Queue(fmt.Sprintf("rig%d", rigs.Add(1)))
	return &rig{t: t, rdb: rdb, mini: m, k: q.keys, q: q}
}

// A shot is a script call that can be sent more than once.
type shot struct {
	script *script
	keys   []string // laneKey stands for the caller's lane
	args   []any    // but the sequence
}

// send sends s with a sequence of a lane.
func (r *rig) send(l *lane, seq int64, s shot) (any, error) {
	c := &call{script: s.script, keys: withLane(slices.Clone(s.keys), l), args: append([]any{seq}, s.args...)}
	attempt(r.t.Context(), r.rdb, c)
	return c.reply, c.err
}

// fire sends s once in a lane of its own and returns its words.
func (r *rig) fire(s shot) string {
	r.t.Helper()
	reply, err := r.send(newLane(&r.k), 1, s)
	require.NoError(r.t, err)
	text, ok := reply.(string)
	require.True(r.t, ok, "script %s answered %v", s.script.name, reply)
	return text
}

// dump is every key of the queue but the lanes.
func (r *rig) dump() map[string]string {
	r.t.Helper()
	all := redistest.Dump(r.t.Context(), r.rdb, r.k.prefix)
	for key := range all {
		if strings.HasPrefix(key, r.k.prefix+"lane:") {
			delete(all, key)
		}
	}
	return all
}

// do runs a command as an operator might by hand.
func (r *rig) do(args ...any) any {
	r.t.Helper()
	v, err := r.rdb.Do(r.t.Context(), args...).Result()
	if err != redis.Nil {
		require.NoError(r.t, err, "%v", args)
	}
	return v
}

// number is a reply as a number; nil is 0.
func (r *rig) number(args ...any) int64 {
	r.t.Helper()
	switch v := r.do(args...).(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		n, err := strconv.ParseFloat(v, 64)
		require.NoError(r.t, err)
		return int64(n)
	default:
		return 0
	}
}

func (r *rig) counter(name string) int64 { r.t.Helper(); return r.number("HGET", r.k.meta, "n:"+name) }

func (r *rig) check() {
	r.t.Helper()
	found, err := r.q.Check(r.t.Context())
	if !errors.Is(err, ErrNotFound) { // of a queue that nothing was done to
		require.NoError(r.t, err)
	}
	require.Empty(r.t, found)
}

// places names the keys that hold an id.
func (r *rig) places(id string) string {
	r.t.Helper()
	ctx, in := r.t.Context(), []string{}
	add := func(name string, there bool) {
		if there {
			in = append(in, name)
		}
	}
	add("jobs", len(r.rdb.XRange(ctx, r.k.jobs, id, id).Val()) > 0)
	add("held", r.rdb.HExists(ctx, r.k.held, id).Val())
	add("due", r.rdb.ZScore(ctx, r.k.due, id).Err() == nil)
	add("prio", r.rdb.ZScore(ctx, r.k.prio, id).Err() == nil)
	add("leases", r.rdb.ZScore(ctx, r.k.leases, id).Err() == nil)
	add("runs", r.rdb.HExists(ctx, r.k.runs, id).Val())
	add("done", r.rdb.HExists(ctx, r.k.done, id).Val())
	add("done:at", r.rdb.ZScore(ctx, r.k.doneAt, id).Err() == nil)
	grave, err := r.rdb.HGet(ctx, r.k.index, id).Result()
	add("index", err == nil)
	add("dead", err == nil && len(r.rdb.XRange(ctx, r.k.dead, grave, grave).Val()) > 0)
	return strings.Join(in, " ")
}

// take leases the one job that there is.
func (r *rig) take(nonce string) hold {
	r.t.Helper()
	got := r.lease(ask{n: 10, nonce: nonce})
	require.Len(r.t, got.jobs, 1)
	return hold{got.jobs[0].id, got.token}
}

// lapse lets leases run out.
func (r *rig) lapse(ids ...string) { r.t.Helper(); r.rescore(r.k.leases, ids) }

// ripen makes the time of waiting jobs come.
func (r *rig) ripen(ids ...string) { r.t.Helper(); r.rescore(r.k.due, ids) }

// rescore sets the score of members that are there to a time long past.
func (r *rig) rescore(key string, ids []string) {
	r.t.Helper()
	args := []any{"ZADD", key, "XX", "CH"}
	for _, id := range ids {
		args = append(args, 1000, id)
	}
	require.EqualValues(r.t, len(ids), r.do(args...))
}
