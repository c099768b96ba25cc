//go:build !race

package pawl

import (
	"fmt"

	"github.com/stretchr/testify/require"
)

// The shots of the calls that operate a queue.

// purgeShot is of jobs of a state; uniques are their keys, as many or none.
func (r *rig) purgeShot(s State, uniques []string, ids ...string) shot {
	k := &r.k
	p := shot{scriptPurge, k.living(k.meta, k.minutes, laneKey, k.wake), []any{string(s)}}
	for _, key := range uniques {
		p.keys = append(p.keys, k.unique(key))
	}
	for i, id := range ids {
		index := 0
		if i < len(uniques) {
			index = i + 1
		}
		p.args = append(p.args, id, index)
	}
	return p
}

func (r *rig) rescheduleShot(ms int64, id string) shot {
	k := &r.k
	return shot{scriptReschedule, k.living(k.index, k.wake, laneKey), []any{id, ms, rec(long)}}
}

func (r *rig) pauseShot(ms int64) shot {
	k := &r.k
	return shot{scriptPause, []string{k.meta, k.wake, laneKey, k.jobs, k.held, k.dead, k.workers, k.schedules}, []any{ms}}
}

func (r *rig) destroyShot() shot {
	k := &r.k
	return shot{scriptDestroy, append(k.living(k.dead, k.index, k.meta, k.minutes, k.wake, laneKey), k.workers, k.info,
		k.done, k.doneAt, k.schedules, k.scheduleTimes, k.scheduleStates), nil}
}

func (r *rig) freeShot(uniques ...string) shot {
	s := shot{scriptFree, []string{r.k.jobs, r.k.held, laneKey}, nil}
	for _, key := range uniques {
		s.keys = append(s.keys, r.k.unique(key))
	}
	return s
}

// The reads and the beat have no lane.

func (r *rig) beatCall(tag, said string) *call {
	return &call{script: scriptBeat, keys: []string{r.k.workers, r.k.info, r.k.scheduleTimes}, args: []any{tag, said}}
}

func (r *rig) listCall(source, score, id string, ids ...any) *call {
	return &call{script: scriptList, keys: r.k.living(r.k.meta, r.k.done, r.k.doneAt), args: append([]any{source, score, id, maxCallItems}, ids...)}
}

func (r *rig) reads() map[string]*call {
	k := &r.k
	return map[string]*call{
		"list fresh":   r.listCall("fresh", "", ""),
		"list due":     r.listCall("due", "", ""),
		"list delayed": r.listCall("delayed", "", ""),
		"list prio":    r.listCall("prio", "", ""),
		"list lapsed":  r.listCall("lapsed", "", ""),
		"list done":    r.listCall("done", "", ""),
		"list running": r.listCall("running", "", "", "1750000000000000-9223372036854775808"),
		"workers":      {script: scriptWorkers, keys: []string{k.workers, k.info}},
		"minutes":      {script: scriptMinutes, keys: []string{k.meta, k.minutes}},
		"schedules":    r.q.scheduleCall("all", 0),
		"stats":        {script: scriptStats, keys: k.stats(), args: []any{canaryName}},
	}
}

// ask sends a call without a lane.
func (r *rig) ask(c *call) (any, error) {
	attempt(r.t.Context(), r.rdb, c)
	return c.reply, c.err
}

// words is the answer of a read, as texts.
func (r *rig) words(c *call) (words []string) {
	r.t.Helper()
	reply, err := r.ask(c)
	require.NoError(r.t, err)
	parts, ok := reply.([]any)
	require.True(r.t, ok, "%v", reply)
	for _, p := range parts {
		words = append(words, fmt.Sprint(p))
	}
	return words
}
