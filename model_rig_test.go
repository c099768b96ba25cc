//go:build !race

package pawl

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/minidial"
	"github.com/pawlq/pawl/internal/redistest"
)

// modelStart is the time at which a history begins, past any that the wall
// clock of a real server could expire a key at.
const modelStart = 4102444800_999_600 // us

// modelScripts are scripts by name: the package's own, or changed copies.
type modelScripts map[string]*script

func modelTable() modelScripts {
	return maps.Clone(scripts)
}

// replace is the table with old replaced in the scripts of these names, or of
// all that have it, and how often it was.
func (table modelScripts) replace(old, new string, names ...string) (modelScripts, int) {
	changed, times := modelScripts{}, 0
	for name, s := range table {
		if len(names) == 0 || slices.Contains(names, name) {
			times += strings.Count(s.body, old)
			body := strings.ReplaceAll(s.body, old, new)
			sum := sha1.Sum([]byte(body))
			s = &script{name: name, body: body, sha: hex.EncodeToString(sum[:])}
		}
		changed[name] = s
	}
	return changed, times
}

// A modelRig is a Redis whose clock the test holds.
type modelRig struct {
	mini     *miniredis.Miniredis // nil: a real server
	rdb      *redis.Client
	client   *Client
	scripts  modelScripts
	stock    bool // the scripts are the package's own, so that Queue's methods fit
	maxBytes int  // of records in a lease, as the scripts have it
	keptMost int  // jobs that are kept, as the scripts have it
}

func modelMini(t *testing.T, scripts modelScripts) *modelRig {
	t.Helper()
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.Start())
	m.SetTime(time.UnixMicro(modelStart))
	m.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return minidial.Dial(m) }})
	t.Cleanup(m.Close)
	t.Cleanup(func() { _ = rdb.Close() })
	return newModelRig(t, &modelRig{mini: m, rdb: rdb, scripts: scripts})
}

// modelClock is the key that scripts read the time from on a real server.
const modelClock = "model:clock"

// modelRedis has a real server run the scripts, with one change: they read the
// time from a key, since nobody can set the server's clock.
func modelRedis(t *testing.T) *modelRig {
	t.Helper()
	clock := `{ string.match(redis.call('GET', '` + modelClock + `'), '(%d+) (%d+)') }`
	scripts, times := modelTable().replace("redis.call('TIME')", clock)
	require.NotZero(t, times)
	return newModelRig(t, &modelRig{rdb: redistest.Start(t).Client(t), scripts: scripts})
}

func newModelRig(t *testing.T, r *modelRig) *modelRig {
	t.Helper()
	var err error
	r.client, err = New(r.rdb, Config{})
	require.NoError(t, err)
	r.maxBytes, r.keptMost = 1000000, 10000
	return r
}

// setClock sets the server's time. Keys that the model saw expire are deleted
// where the server's own clock cannot do it.
func (r *modelRig) setClock(us int64, expired []string) error {
	if r.mini != nil {
		r.mini.SetTime(time.UnixMicro(us))
		return nil
	}
	ctx := context.Background()
	for _, key := range expired {
		if err := r.rdb.Del(ctx, key).Err(); err != nil {
			return err
		}
	}
	return r.rdb.Set(ctx, modelClock, fmt.Sprintf("%d %d", us/1e6, us%1e6), 0).Err()
}

func (r *modelRig) read(k *keyspace) (modelState, error) {
	if r.mini != nil {
		return modelReadMini(r.mini, k), nil
	}
	return modelReadRedis(context.Background(), r.rdb, k)
}

// A modelLane is a lane and what was sent in it, as long as Redis remembers.
type modelLane struct {
	name    string
	lane    *lane
	sent    []*modelSent // the last few, oldest first
	expires int64        // us
}

// modelSent is a call that was answered.
type modelSent struct {
	call   *call
	answer string
	lease  *modelLease // of a lease call
}

// A modelWorker has lanes as a worker's feed has.
type modelWorker struct {
	visibility int64
	crashes    int
	lanes      map[string]*modelLane
}

// A modelMachine is one history: random calls to a queue, each compared with
// the model.
type modelMachine struct {
	rig     *modelRig
	q       *Queue
	m       *modelQueue
	roll    modelDice
	workers [3]*modelWorker
	lanes   map[string]*modelLane // of clients
	after   modelState            // of the operation under way, if it was read
	log     []string
	nonce   int

	// What it is mostly about.
	weights []int
	weight  int // all of them
	verbs   []modelVerb
	keys    int // unique keys
}

// modelDice is where a machine's choices come from: a number in [0, n).
type modelDice func(n int, what string) int

func (r *modelRig) start(roll modelDice) (*modelMachine, error) {
	if err := r.rdb.FlushAll(context.Background()).Err(); err != nil {
		return nil, err
	}
	x := &modelMachine{rig: r, q: r.client.Queue("model"), m: newModelQueue(modelStart, r.maxBytes), roll: roll,
		lanes: map[string]*modelLane{}}
	for i, visibility := range []int64{1000, 5000, 30000} {
		x.workers[i] = &modelWorker{visibility: visibility, crashes: i + 1, lanes: map[string]*modelLane{}}
	}
	x.m.keptMost = r.keptMost
	x.swarm()
	return x, r.setClock(modelStart, nil)
}

// lane is the lane of a name, made if it is new.
func (x *modelMachine) lane(lanes map[string]*modelLane, name string) *modelLane {
	if lanes[name] == nil {
		lanes[name] = &modelLane{name: name, lane: newLane(&x.q.keys)}
	}
	return lanes[name]
}

// remembered is the lanes whose last call Redis knows, in an order that a seed
// repeats.
func (x *modelMachine) remembered(calls int) (lanes []*modelLane) {
	add := func(of map[string]*modelLane) {
		for _, name := range []string{"enqueue0", "enqueue1", "cancel", "redrive", "delete", "purge", "reschedule", "pause", "forget", "lease", "settle", "finish", "retry", "bury", "release", "extend", "progress"} {
			if l := of[name]; l != nil && l.expires > x.m.us && len(l.sent) >= calls {
				lanes = append(lanes, l)
			}
		}
	}
	add(x.lanes)
	for _, w := range x.workers {
		add(w.lanes)
	}
	return lanes
}

// send makes a call in a lane, as the package makes it.
func (x *modelMachine) send(l *modelLane, name string, keys []string, args ...any) (*modelSent, error) {
	c := &call{script: x.rig.scripts[name], keys: withLane(keys, l.lane), args: append([]any{l.lane.next()}, args...)}
	attempt(context.Background(), x.rig.rdb, c)
	s := &modelSent{call: c}
	l.sent = append(l.sent[max(0, len(l.sent)-5):], s)
	l.expires = x.m.us + laneMemory.Microseconds()
	return s, c.err
}

// ask is send for a script that answers with a word, which it must be.
func (x *modelMachine) ask(l *modelLane, name string, want string, keys []string, args ...any) error {
	s, err := x.send(l, name, keys, args...)
	if err == nil {
		s.answer = want
		err = s.check()
	}
	return err
}

func (s *modelSent) check() error {
	got, err := s.call.text()
	if err == nil && got != s.answer {
		err = fmt.Errorf("%s answered %q, want %q", s.call.script.name, got, s.answer)
	}
	return err
}
