package pawl

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
)

func textOf(t *testing.T, id ID) string {
	t.Helper()
	text, ok := jobid.Text(id)
	require.True(t, ok, "%s is no job's id", id)
	return text
}

// odd are answers that no script gives.
func odd(f *testing.F) {
	f.Helper()
	for _, v := range []any{nil, "", "ok", "stale", 0, 1 << 40, []any{}, words(""), []any{nil}, []any{[]any{[]any{}}}, []any{1, 2, 3, 4, 5, 6, 7, 8}} {
		f.Add(writeReply(v))
	}
	f.Add(writeReply(words("a", "b", "c", "d", "e", "f", "g")))
}

func FuzzInspectReply(f *testing.F) {
	odd(f)
	for _, state := range []string{"ready", "delayed", "running", "dead", "done", "lost", "missing", "", "new"} {
		f.Add(writeReply(words(state, seedRecord, "1750000000500", seedRun, "1750000000400")))
	}
	f.Add(writeReply(words("running", "\x02", "9223372036854775808", "9223372036854775807-|9223372036854775807|c|x", "-1")))
	f.Add(writeReply(words("running", seedRecord, "", "-|0||", "")))
	f.Add(writeReply(words("running", seedRecord, "x", "|||", "")))
	f.Add(writeReply(words("ready", seedRecord, "", "a|1|", "")))
	f.Add(writeReply(words("ready", seedRecord, "", "")))
	c, p := newPuppet(f)
	q := c.Queue("emails")
	id, _ := jobid.FromText(seedID)
	f.Fuzz(func(t *testing.T, reply []byte) {
		p.replies = reply
		v, _ := readReply(reply, 0)
		parts, isList := v.([]any)
		info, err := q.Get(t.Context(), id)
		if err != nil {
			require.Zero(t, info)
			require.Equal(t, isList && len(parts) == 5 && parts[0] == "missing", errors.Is(err, ErrNotFound), "%v: only a missing job is not found", err)
			return
		}
		require.Equal(t, id, info.ID)
		require.Contains(t, []State{StateReady, StateDelayed, StateRunning, StateDead, StateDone, StateCancelled, StateDiscarded}, info.State)
		if info.State != StateRunning {
			require.Zero(t, info.StartedAt)
		}
		p.replies = reply
		dead, err := q.Dead().Get(t.Context(), id)
		require.Equal(t, info.State == StateDead, err == nil)
		if err == nil {
			require.Equal(t, info.Payload, dead.Payload)
		}
	})
}

func FuzzStatsReply(f *testing.F) {
	odd(f)
	stats := func(parts ...any) { f.Add(writeReply(parts)) }
	canary := definition{spec: "every 1m0s"}.text()
	stats("1750000000300", 5, 4, 3, 1, 2, "1750000000000", 6, 2, canary, "A 1750000000000 1750000060000 0 - 0 0 0 0", "n:done", "7", "paused", "253402300799999")
	stats("1750000000300", 5, 4, 3, 1, 2, "0", 0, 0, canary, "torn", "n:done", "seven", "n:new", "1", "paused", "1750000000400", "cursor")
	stats("9223372036854775807", 1, 0, 0, 0, 0, "1", 0, 1, canary, "A 1 1 0 - 0 0 0 0") // ages above 292 years
	stats("-9223372036854775808", 1, 0, 0, 0, 0, "9223372036854775807", 0, 0, canary, "", "canary", "9223372036854775807")
	stats("1750000000300", 5, 4, 3, 1, 2, "0", 6, 0, definition{spec: "cron @hourly in UTC"}.text(), "")
	stats("1750000000300", 5, 4, 3, 1, 2, "0", 7, 0, "", "", "paused", 1<<40)
	c, p := newPuppet(f)
	q := c.Queue("emails")
	f.Fuzz(func(t *testing.T, reply []byte) {
		p.replies, p.asked = reply, 0
		v, _ := readReply(reply, 0)
		parts, _ := v.([]any)
		s, err := q.Stats(t.Context())
		require.Equal(t, 1, p.asked, "an answer that makes no sense is not asked for again")
		require.Equal(t, len(parts) >= statsWords, err == nil, "%v", err)
		if err != nil {
			require.Zero(t, s)
			return
		}
		require.GreaterOrEqual(t, s.OldestReady, time.Duration(0))
		require.GreaterOrEqual(t, s.CanaryAge, time.Duration(0))
		require.True(t, s.CanaryEvery >= time.Second || s.CanaryEvery+s.CanaryAge == 0, "no age without a period")
		if now, ok := parts[0].(int64); ok && now > 0 {
			if since, ok := parts[6].(int64); ok && since > 0 && since < now {
				require.Equal(t, min(now-since, century/1_000_000), s.OldestReady.Milliseconds(), "not wrapped")
			}
		}
		require.True(t, s.Paused || s.PausedUntil.IsZero())
	})
}

func FuzzMinutesReply(f *testing.F) {
	odd(f)
	f.Add(writeReply(words("1750000000300", "n:done", "7", "cursor", "0-0", "", "now", "29166666", "6", "29166666 1 2 3", "5", "29166665 1 1 1")))
	f.Add(writeReply(words("1750000000300", "n:done", "7", "", "6", "29166667 9", "7", "-9223372036854775808 1", "8", "x y z", "9")))
	f.Add(writeReply(words("9223372036854775807", "", "1", "9223372036854775807 9223372036854775807", "2", "-1 -9223372036854775808")))
	f.Add(writeReply(words("-9223372036854775808", "", "1", "-153722867280912 1")))
	f.Add(writeReply(words("1750000000300", "odd")))
	f.Add(writeReply(words("soon", "", "1", "29166666 1")))
	c, p := newPuppet(f)
	q := c.Queue("emails")
	f.Fuzz(func(t *testing.T, reply []byte) {
		p.replies = reply
		minutes, err := q.Minutes(t.Context(), time.Time{}, time.Time{})
		if err != nil {
			require.Nil(t, minutes)
			return
		}
		require.Len(t, minutes, minutesKept)
		for i, m := range minutes {
			require.Zero(t, m.At.UnixMilli()%60_000)
			require.True(t, i == 0 || m.At.Equal(minutes[i-1].At.Add(time.Minute)), "one after another")
			for _, n := range m.Counters.fields() {
				require.GreaterOrEqual(t, *n, int64(0), "counters only grow")
			}
		}
	})
}

func FuzzListReply(f *testing.F) {
	odd(f)
	page := func(more string, parts ...string) []any {
		return words(append([]string{"1750000000300", "1750000000300", more}, parts...)...)
	}
	f.Add(writeReply(page("", seedID, seedRecord, "1750000000200", seedRun)))
	f.Add(writeReply(page(seedID, seedID, seedRecord, "", ""), page("", seedID, seedRecord, "", "")))
	f.Add(writeReply(page("", "no id", "\x02", "x", "|"), page("x", seedID2, seedRecord)))
	f.Add([]byte("[00000001000"))
	f.Add(writeReply(page(seedID), page(""), page("", seedID, seedRecord, "0", seedRun, seedID2, seedRecord, "0", seedRun)))
	c, p := newPuppet(f)
	q := c.Queue("emails")
	f.Fuzz(func(t *testing.T, replies []byte) {
		for _, state := range []State{StateReady, StateDelayed, StateRunning, StateDead} {
			p.replies = replies
			seen, failed := map[string]bool{}, false // by what is no job's id, too
			for info, err := range q.List(soon(t), state, Filter{}) {
				require.False(t, failed, "an error ends the walk")
				if err != nil {
					require.Zero(t, info)
					failed = true
					continue
				}
				require.False(t, seen[info.text], "seen twice")
				seen[info.text] = true
				require.Equal(t, state, info.State)
			}
		}
	})
}

func FuzzWorkersReply(f *testing.F) {
	odd(f)
	const said = `{"name":"web","host":"h","pid":7,"build":"v1","concurrency":10,"running":1,"started":1750000000000,"draining":true}`
	f.Add(writeReply(words("abcdefgh", "1750000000300", said, "ABCDEFGH", "1750000000301", "")))
	f.Add(writeReply(words("abcdefgh", "1750000000300", said, "abcdefgh", "1750000000302", `{"name":7}`)))
	f.Add(writeReply(words("", "-9223372036854775808", `[]`, "x", "9223372036854775807", `{"pid":1e99,"started":9223372036854775807}`)))
	f.Add(writeReply(words("abcdefgh", "1750000000300")))
	c, p := newPuppet(f)
	f.Fuzz(func(t *testing.T, reply []byte) {
		p.replies = reply
		v, _ := readReply(reply, 0)
		parts, isList := v.([]any)
		workers, err := c.Workers(t.Context())
		require.Equal(t, isList, err == nil, "%v", err)
		require.LessOrEqual(t, len(workers), len(parts)/3)
		for _, w := range workers {
			require.Contains(t, w.Queues, "emails")
		}
	})
}

func FuzzCheckReply(f *testing.F) {
	odd(f)
	f.Add(writeReply(words("", "", "")))
	f.Add(writeReply(words("in two places", "", "held by nobody")))
	f.Add(writeReply(words("", "", "", "one too many")))
	c, p := newPuppet(f)
	q := c.queue("emails")
	f.Fuzz(func(t *testing.T, reply []byte) {
		p.replies = reply
		v, _ := readReply(reply, 0)
		parts, isList := v.([]any)
		check := &checker{q: q, ctx: t.Context()}
		err := check.judge("held", []string{seedID, seedID2}, []string{"unique"})
		require.Equal(t, isList && len(parts) == 3, err == nil, "%v", err)
		for _, v := range check.found {
			require.NoError(t, err)
			require.NotEmpty(t, v.Text)
			require.Equal(t, v.Key == "unique", v.ID == "")
		}
	})
}

// FuzzControlReply gives an answer to each verb that moves jobs. Most verbs know
// no more of it than a word; what counts is that nothing is claimed that the
// answer does not say.
func FuzzControlReply(f *testing.F) {
	odd(f)
	for _, word := range []string{"ok", "gone", "flagged", "missing", "running", "cancelled", "dead", "changed", seedID2, "k", "s", "m", "l", "ok ok", "kk"} {
		f.Add(writeReply(word))
		f.Add(writeReply(words("ready", seedRecord, "1750000000500", seedRun, "1750000000400"), word))
		f.Add(writeReply(words("missing", "", "", "", "1750000000400"), word))
	}
	c, p := newPuppet(f)
	q := c.Queue("emails")
	id, _ := jobid.FromText(seedID)
	f.Fuzz(func(t *testing.T, replies []byte) {
		first, rest := readReply(replies, 0)
		word, isText := first.(string)
		give := func() { p.replies = replies }
		_, isList := first.([]any)
		second, _ := readReply(rest, 0)
		_, answered := second.(string)

		give()
		report, err := q.Dead().Redrive(soon(t), id)
		require.LessOrEqual(t, report.Moved+len(report.Refused), report.Matched)
		require.LessOrEqual(t, report.Matched, 1)
		require.True(t, report.Moved == 0 || isText, "nothing said that it was moved")
		require.True(t, report.Matched == 1 || err != nil, "it is counted, or there is an error")

		give()
		n, err := q.Dead().Delete(soon(t), id)
		require.True(t, err == nil || n == 0)
		require.True(t, n == 0 || isText)

		for name, do := range map[string]func() error{
			"pause":  func() error { return q.Pause(soon(t), time.Minute) },
			"resume": func() error { return q.Resume(soon(t)) },
		} {
			give()
			require.Equal(t, isText && word != "stale" && word != "missing", do() == nil, name)
		}
		for name, do := range map[string]func() error{
			"cancel":     func() error { return q.Cancel(soon(t), id) },
			"reschedule": func() error { return q.Reschedule(soon(t), id, time.Now()) },
			"run now":    func() error { return q.RunNow(soon(t), id) },
		} {
			give()
			err := do()
			require.True(t, err != nil || isList && answered, "%s: nothing said that it was done", name)
		}
		give()
		err = q.Dead().RedriveWith(soon(t), id, plainArgs{1})
		require.True(t, err != nil || isText, "redrive with: nothing said that it was done")
	})
}
