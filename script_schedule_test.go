//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The shots of schedules.

// editShot writes or removes schedules.
func (r *rig) editShot(edits ...edit) shot {
	s := shot{scriptSchedule, []string{r.k.schedules, r.k.scheduleTimes, r.k.scheduleStates, laneKey}, []any{3}}
	for _, e := range edits {
		s.args = append(s.args, e.id, e.seen, e.state, e.definition)
	}
	return s
}

// at is the state of a schedule that is due in so many ms from now.
func (r *rig) at(ms int64) scheduleState {
	r.t.Helper()
	now, err := r.rdb.Time(r.t.Context()).Result()
	require.NoError(r.t, err)
	return scheduleState{rev: "rev", anchor: 1000, next: now.UnixMilli() + ms, job: "-"}
}

// scheduled is a schedule that is there, due so many ms from now.
func (r *rig) scheduled(id string, ms int64) scheduleState {
	r.t.Helper()
	s := r.at(ms)
	r.must("k", r.editShot(edit{id: id, state: s.text(), definition: "\x01d"}))
	return s
}

// tickShot fires schedules: jobs are their records and hows, for the time at which the
// schedule is due.
func (r *rig) tickShot(uniques []string, id string, s scheduleState, next int64, jobs ...newJob) shot {
	k := &r.k
	keys := k.living(k.meta, k.minutes, k.wake, laneKey, k.schedules, k.scheduleTimes, k.scheduleStates)
	for _, u := range uniques {
		keys = append(keys, k.unique(u))
	}
	args := []any{id, s.text(), next, 2, len(jobs)}
	for _, j := range jobs {
		args = append(args, s.next, newLow(), j.record, j.how)
	}
	return shot{scriptTick, keys, args}
}

// standing is the state of a schedule, and its score or -1.
func (r *rig) standing(id string) (s scheduleState, at int64) {
	r.t.Helper()
	text, _ := r.do("HGET", r.k.scheduleStates, id).(string)
	s, ok := parseScheduleState(text)
	require.True(r.t, ok, text)
	if r.do("ZSCORE", r.k.scheduleTimes, id) != nil {
		return s, r.number("ZSCORE", r.k.scheduleTimes, id)
	}
	return s, -1
}

func init() {
	due := func(r *rig) scheduleState { return r.scheduled("s", -1000) }
	writes["tick"] = func(r *rig) shot {
		r.fresh(1)
		s := due(r)
		return r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(), ""})
	}
	writes["tick of jobs of each sort"] = func(r *rig) shot {
		r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
		s := due(r)
		return r.tickShot([]string{"a", "b"}, "s", s, s.next+60_000, newJob{rec(), "d 0 0 1 d 0"}, newJob{rec(), "d 0 0 2 d 60000"},
			newJob{rec(long), "d 5000 0 0 d 0"}, newJob{rec(priority(3)), "d 0 3 0 d 0"})
	}
	writes["tick of a schedule that has changed"] = func(r *rig) shot {
		s := due(r)
		s.rev = "other"
		return r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(long), "d 5000 0 0 d 0"})
	}
	writes["tick that passes without a job"] = func(r *rig) shot {
		s := due(r)
		return r.tickShot(nil, "s", s, s.next+60_000)
	}
	writes["schedule"] = func(r *rig) shot {
		return r.editShot(edit{id: "a", state: r.at(1000).text(), definition: "\x01d"}, edit{id: "b", state: r.at(1000).text(), definition: "\x01d"})
	}
	writes["schedule that pauses"] = func(r *rig) shot {
		s := due(r)
		was := s.text()
		s.paused = true
		return r.editShot(edit{id: "s", seen: was, state: s.text()})
	}
	writes["schedule that resumes"] = func(r *rig) shot {
		s := r.at(-1000)
		s.paused = true
		r.must("k", r.editShot(edit{id: "s", state: s.text(), definition: "\x01d"}))
		was := s.text()
		s.paused = false
		return r.editShot(edit{id: "s", seen: was, state: s.text()})
	}
	writes["schedule that removes"] = func(r *rig) shot {
		s := due(r)
		return r.editShot(edit{id: "s", seen: s.text()}, edit{id: "none", seen: "x"})
	}
	for _, name := range []string{"tick", "tick of jobs of each sort", "tick that passes without a job", "schedule"} {
		refused[name] = true
	}
}

func TestATickAddsItsJobAndMovesOn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		s := r.scheduled("s", -1000)
		r.scheduled("later", 5000)
		words := strings.Split(r.fire(r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(), ""})), " ")
		require.Len(t, words, 4)
		require.Equal(t, []string{"k", "."}, []string{words[1], words[3]})
		require.InDelta(t, 5000, readWait(words[0]), 2000, "the first that is to come")
		got, at := r.standing("s")
		require.Equal(t, s.next+60_000, at)
		require.Equal(t, scheduleState{rev: "rev", anchor: 1000, next: s.next + 60_000, last: s.next, job: got.job, fired: 1, missed: 2}, got)
		require.Equal(t, "jobs", r.places(got.job))
		require.EqualValues(t, 1, r.counter("enqueued"))

		require.Equal(t, "l", strings.Split(r.fire(r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(), ""})), " ")[1], "it was fired")
		require.EqualValues(t, 1, r.counter("enqueued"))
		r.check()
	})
}

func TestATickIsNotEarly(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		s := r.scheduled("s", 60_000)
		require.Regexp(t, `^\d+ e$`, r.fire(r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(), ""})))
		got, _ := r.standing("s")
		require.Equal(t, s, got)
		require.Zero(t, r.counter("enqueued"))
	})
}

func TestATickKnowsDuplicates(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		holders, _ := r.enqueue([]string{"a", "b"}, newJob{rec(), "d 0 0 1 d 0"}, newJob{rec(long), "d 0 0 2 d 0 r"})
		s := r.scheduled("s", -1000)
		answer := r.fire(r.tickShot([]string{"a", "b"}, "s", s, s.next+60_000,
			newJob{rec(), "d 0 0 1 d 0"}, newJob{rec(), ""}, newJob{newer("x"), "d 0 0 2 d 0 r"}, newJob{rec(), ""}, newJob{rec(), "d 0 0 1 d 0"}))
		require.Regexp(t, `^\d+ k \d+ d.r.d `+holders[0]+" "+holders[1]+" "+holders[0]+"$", answer)
		got, _ := r.standing("s")
		require.EqualValues(t, 3, got.fired)
		require.EqualValues(t, 2, got.skipped)
		require.Equal(t, "jobs", r.places(got.job), "the last one that is new")
		require.EqualValues(t, 4, r.counter("enqueued"))
		r.check()
	})
}

// Several schedules in a call: those that are as they were seen are fired, and the jobs
// of the others are not there.
func TestOfATickOnlyWhatIsAsItWasSeen(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for i, spoil := range []func(s *scheduleState){
			func(s *scheduleState) { s.rev = "x" },
			func(s *scheduleState) { r.do("HDEL", r.k.scheduleStates, "b") },
			func(s *scheduleState) { r.do("HDEL", r.k.schedules, "b") },
			func(s *scheduleState) { r.do("HSET", r.k.scheduleStates, "b", "garbage") },
			func(s *scheduleState) {
				paused := *s
				paused.paused = true
				r.must("k", r.editShot(edit{id: "b", seen: s.text(), state: paused.text()}))
			},
		} {
			r.do("DEL", r.k.schedules, r.k.scheduleTimes, r.k.scheduleStates)
			a, b, c := r.scheduled("a", -3000), r.scheduled("b", -2000), r.scheduled("c", -1000)
			spoil(&b)
			s := r.tickShot(nil, "a", a, a.next+60_000, newJob{rec(), ""}, newJob{rec(), ""})
			s.args = append(s.args, r.tickShot(nil, "b", b, b.next+60_000, newJob{rec(), ""}).args...)
			s.args = append(s.args, r.tickShot(nil, "c", c, c.next+60_000, newJob{rec(), ""}).args...)
			require.Regexp(t, `^(\d+|-) klk \d+ \.\.\.$`, r.fire(s), "%d", i)
			require.EqualValues(t, 3*(i+1), r.counter("enqueued"))
			after, _ := r.standing("c")
			require.Equal(t, "jobs", r.places(after.job))
		}
	})
}

func TestAPausedScheduleIsTriggeredAndNotFired(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		s := r.at(-1000)
		s.paused = true
		r.must("k", r.editShot(edit{id: "s", state: s.text(), definition: "\x01d"}))
		require.Equal(t, "- l", r.fire(r.tickShot(nil, "s", s, s.next+60_000, newJob{rec(), ""})))
		require.Regexp(t, `^- k \d+ \.$`, r.fire(r.tickShot(nil, "s", s, s.next, newJob{rec(), ""})))
		got, at := r.standing("s")
		require.EqualValues(t, -1, at, "it waits for no time")
		require.True(t, got.paused)
		require.EqualValues(t, 1, got.fired)
		r.check()
	})
}

func TestEditsOfWhatHasChangedAreLost(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		s := r.scheduled("a", 1000)
		other := s
		other.fired++
		r.must("lll", r.editShot(edit{id: "a", seen: "", state: other.text(), definition: "\x01x"},
			edit{id: "a", seen: other.text()}, edit{id: "none", seen: s.text(), state: s.text(), definition: "\x01x"}))
		r.must("l", r.editShot(edit{id: "none", state: s.text()})) // without a definition
		require.Equal(t, "\x01d", r.do("HGET", r.k.schedules, "a"))
		r.must("kkf", r.editShot(edit{id: "b", state: s.text(), definition: "\x01d"}, edit{id: "c", state: s.text(), definition: "\x01d"},
			edit{id: "d", state: s.text(), definition: "\x01d"}))
		r.must("kk", r.editShot(edit{id: "a", seen: s.text()}, edit{id: "b", seen: s.text(), state: other.text(), definition: "\x01y"}))
		require.EqualValues(t, 2, r.number("HLEN", r.k.schedules))
		require.EqualValues(t, 2, r.number("ZCARD", r.k.scheduleTimes))
		require.Equal(t, "\x01y", r.do("HGET", r.k.schedules, "b"))
		r.check()
	})
}

func TestABeatTellsOfTheFirstTick(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		beat := func() string {
			reply, err := r.ask(r.beatCall("tag", "{}"))
			require.NoError(t, err)
			return fmt.Sprint(reply)
		}
		require.Equal(t, "ok -", beat())
		r.scheduled("later", 50_000)
		r.scheduled("s", 5_000)
		word, ok := strings.CutPrefix(beat(), "ok ")
		require.True(t, ok)
		require.InDelta(t, 5000, readWait(word), 2000)
		r.scheduled("due", -5_000)
		require.Equal(t, "ok 0", beat())
		for _, spoil := range [][]any{{"DEL", r.k.scheduleTimes}, {"SADD", r.k.scheduleTimes, "x"}} {
			r.do(spoil...)
			require.Equal(t, "ok -", beat(), "a beat is not held up by it")
		}
		r.do("DEL", r.k.scheduleTimes)
		r.do("ZADD", r.k.scheduleTimes, "+inf", "x")
		require.Equal(t, "ok -", beat())
	})
}

func TestWhatIsDueIsReadInPages(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for i := range 3 {
			r.scheduled(fmt.Sprint("s", i), int64(-3000+i))
		}
		r.do("HSET", r.k.schedules, "s1", "\x01"+strings.Repeat("x", 1<<20))
		reply, err := r.ask(r.q.scheduleCall("due", 0))
		require.NoError(t, err)
		look, err := readSchedules(reply)
		require.NoError(t, err)
		require.Less(t, look.wait, int64(0))
		var ids []string
		for _, s := range look.seen {
			ids = append(ids, s.id)
		}
		require.Equal(t, []string{"s0", "s1"}, ids, "a megabyte ends a page")
		reply, err = r.ask(r.q.scheduleCall("due", 2))
		require.NoError(t, err)
		look, err = readSchedules(reply)
		require.NoError(t, err)
		require.Len(t, look.seen, 1)
		require.Equal(t, "s2", look.seen[0].id)
		require.Equal(t, "\x01d", look.seen[0].definition)
	})
}

// What an eviction or a hand edit leaves is told by Check, and mended.
func TestSchedulesInPartsAreMended(t *testing.T) {
	t.Parallel()
	definition := definition{spec: Every(time.Hour).String(), record: rec()}.text()
	for name, c := range map[string]struct {
		spoil func(r *rig)
		tells string
		there bool // afterwards
	}{
		"no time":            {func(r *rig) { r.do("DEL", r.k.scheduleTimes) }, "not where its state says", true},
		"another time":       {func(r *rig) { r.do("ZADD", r.k.scheduleTimes, 5, "s") }, "not where its state says", true},
		"no number":          {func(r *rig) { r.do("ZADD", r.k.scheduleTimes, "-inf", "s") }, "not where its state says", true},
		"no state":           {func(r *rig) { r.do("DEL", r.k.scheduleStates) }, "without a state", true},
		"a state of garbage": {func(r *rig) { r.do("HSET", r.k.scheduleStates, "s", "rev 1 2 3") }, "without a state", true},
		"no definition":      {func(r *rig) { r.do("DEL", r.k.schedules) }, "state of no schedule", false},
		"a time alone":       {func(r *rig) { r.do("DEL", r.k.schedules, r.k.scheduleStates) }, "is no schedule", false},
		"a paused one with a time": {func(r *rig) {
			s, at := r.standing("s")
			was := s.text()
			s.paused = true
			r.must("k", r.editShot(edit{id: "s", seen: was, state: s.text()}))
			r.do("ZADD", r.k.scheduleTimes, at, "s")
		}, "is paused and waits", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
				r := open(t)
				s := r.at(3_600_000)
				r.must("k", r.editShot(edit{id: "s", state: s.text(), definition: definition}))
				r.check()
				c.spoil(r)
				found, err := r.q.Check(t.Context())
				require.NoError(t, err)
				require.Len(t, found, 1, "%v", found)
				require.Equal(t, "s", found[0].ID)
				require.Contains(t, found[0].Text, c.tells)
				w, err := NewWorker(r.q.client, WorkerConfig{Queues: Queues(r.q.name)})
				require.NoError(t, err)
				w.feeds[0].mendSchedules(t.Context())
				r.check()
				infos, err := r.q.Schedules(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.there, len(infos) == 1)
				if c.there {
					_, at := r.standing("s")
					require.True(t, infos[0].Paused || at > time.Now().UnixMilli())
				}
			})
		})
	}
}
