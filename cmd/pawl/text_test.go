package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func tableOf(width int, head []string, rows ...[]string) (string, error) {
	var out bytes.Buffer
	a := &app{world: world{width: width}, out: bufio.NewWriter(&out)}
	t := a.newTable(head...)
	for _, row := range rows {
		if err := t.add(row...); err != nil {
			return "", err
		}
	}
	if err := t.flush(); err != nil {
		return "", err
	}
	err := a.out.Flush()
	return out.String(), err
}

// Columns are as wide as a terminal shows them: wide characters take two, combining ones
// none.
func TestTablesAreAlignedByWhatIsShown(t *testing.T) {
	t.Parallel()
	got, err := tableOf(0, []string{"NAME", "#N", "~TEXT"}, []string{"plain", "1", "a"}, []string{"日本語", "12,345", "b"}, []string{"e\u0301", "", ""}, []string{"x\ty", "2", "c"})
	require.NoError(t, err)
	require.Equal(t, ""+
		"NAME         N  TEXT\n"+
		"plain        1  a\n"+
		"日本語  12,345  b\n"+
		"e\u0301            -  -\n"+
		`x\ty         2  c`+"\n", got)
}

func TestLongCellsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcdefghi ", 10)
	got, err := tableOf(0, []string{"NAME", "~TEXT"}, []string{long, long})
	require.NoError(t, err)
	require.Equal(t, "NAME"+strings.Repeat(" ", 98)+"TEXT\n"+long+"  "+long[:39]+"…\n", got, "a name is needed whole")
	got, err = tableOf(30, []string{"NAME", "~TEXT"}, []string{"x", long})
	require.NoError(t, err)
	require.Equal(t, "NAME  TEXT\nx     abcdefghi abcdefghi abc…\n", got, "the last column ends with the terminal")
	got, err = tableOf(120, []string{"NAME", "~TEXT"}, []string{"x", long})
	require.NoError(t, err)
	require.Equal(t, "NAME  TEXT\nx     "+strings.TrimRight(long, " ")+"\n", got, "a terminal wide enough shows it whole")
	got, err = tableOf(60, []string{"NAME", "~KIND", "#N", "~TEXT"}, []string{"x", "short", "7", long})
	require.NoError(t, err)
	require.Equal(t, "NAME  KIND   N  TEXT\nx     short  7  "+long[:43]+"…\n", got, "what the short ones leave is for the long ones")
	got, err = tableOf(30, []string{"NAME", "~TEXT"}, []string{"x", strings.Repeat("日", 30)})
	require.NoError(t, err)
	require.LessOrEqual(t, columns.StringWidth(strings.Split(got, "\n")[1]), 30)
}

// The column that a table is read for is the last one: the others make room for it in a
// terminal, and where there is none it is whole.
func TestTheMainColumnIsCutLast(t *testing.T) {
	t.Parallel()
	long, head := strings.TrimSpace(strings.Repeat("abcdefghi ", 30)), []string{"NAME", "~KIND", "+ERROR"}
	got, err := tableOf(0, head, []string{"x", long, long})
	require.NoError(t, err)
	require.Equal(t, "NAME  KIND"+strings.Repeat(" ", 38)+"ERROR\nx     "+long[:39]+"…  "+long+"\n", got, "a pipe has no width")
	got, err = tableOf(80, head, []string{"x", long, long})
	require.NoError(t, err)
	require.Equal(t, "NAME  KIND      ERROR\nx     abcdefg…  "+long[:63]+"…\n", got)
	got, err = tableOf(80, head, []string{"x", long, "short"})
	require.NoError(t, err)
	require.Equal(t, "NAME  KIND"+strings.Repeat(" ", 65)+"ERROR\nx     "+long[:66]+"…  short\n", got, "what it does not need the others have")
	got, err = tableOf(80, []string{strings.Repeat("N", 75), "~KIND", "+ERROR"}, []string{"x", "short", long})
	require.NoError(t, err)
	require.Equal(t, 2*80, columns.StringWidth(strings.Split(got, "\n")[1]), "a row that is too wide fills its second line")
	got, err = tableOf(80, head, []string{"x", long, ""})
	require.NoError(t, err)
	require.Equal(t, "NAME  KIND\nx     "+long[:73]+"…\n", got)
	got, err = tableOf(0, head, []string{"x", "y", strings.Repeat("\x1b", 4<<10)})
	require.NoError(t, err)
	require.NotContains(t, got, "…", "the longest error there is")
}

// A column of texts that are all empty says nothing, and takes room from the others. One that
// may yet have something, since not all rows are known, stays.
func TestEmptyColumnsAreLeftOut(t *testing.T) {
	t.Parallel()
	got, err := tableOf(0, []string{"A", "~ERROR", "B"}, []string{"1", "", ""}, []string{"2", "", "x"})
	require.NoError(t, err)
	require.Equal(t, "A  B\n1  -\n2  x\n", got)
	rows := make([][]string, tablePage+1)
	for i := range rows {
		rows[i] = []string{"1", ""}
	}
	rows[tablePage][1] = "late"
	got, err = tableOf(0, []string{"A", "~ERROR"}, rows...)
	require.NoError(t, err)
	require.Contains(t, got, "A  ERROR\n1  -\n")
	require.Contains(t, got, "1  late\n")
}

// A long table is written as it comes: later pages may be wider.
func TestTablesAreWrittenInPages(t *testing.T) {
	t.Parallel()
	var rows [][]string
	for range tablePage {
		rows = append(rows, []string{"x", "y"})
	}
	got, err := tableOf(0, []string{"A", "B"}, append(rows, []string{"wider", "y"})...)
	require.NoError(t, err)
	lines := strings.Split(got, "\n")
	require.Equal(t, "A  B", lines[0])
	require.Equal(t, "x  y", lines[1])
	require.Equal(t, "wider  y", lines[tablePage+1])
	require.Equal(t, 1, strings.Count(got, "A  B"))
	empty, err := tableOf(0, []string{"A"})
	require.NoError(t, err)
	require.Empty(t, empty)
}

func TestAgesCountsAndSizes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59*time.Minute + 59*time.Second: "59m",
		time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 2000 * 24 * time.Hour: "2,000d",
	} {
		require.Equal(t, want, age(d), d.String())
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", 1e9: "1,000,000,000"} {
		require.Equal(t, want, count(n))
	}
	for n, want := range map[int]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 20: "3.0 MiB"} {
		require.Equal(t, want, size(n))
	}
	require.Equal(t, "1 job", some(1, "job"))
	require.Equal(t, "1,000 jobs", some(1000, "job"))
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	s := &session{clock: func() time.Time { return now }, ahead: time.Hour}
	require.Equal(t, "30m ago", s.ago(now.Add(30*time.Minute)), "by the clock of the server")
	require.Equal(t, "-", s.ago(time.Time{}))
	require.Equal(t, "in 1h", s.in(now.Add(2*time.Hour)))
	require.Equal(t, "now", s.in(now))
	require.Equal(t, "on 2999-12-24", s.in(time.Date(2999, 12, 24, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, "9999-12-31 00:00:00Z", s.dated(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)))
	require.Equal(t, "2026-12-01 07:00:00Z (2h ago)", s.dated(now.Add(-time.Hour)))
}

func TestDurationsAndTimesAsFlags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "2h": 2 * time.Hour, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1d1ms": 24*time.Hour + time.Millisecond} {
		got, err := parseSpan(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "0s", "-1h", "1", "d", "1d2", "-1d", "99999d", "1dd", "h", "1d-25h"} {
		_, err := parseSpan(text)
		require.Error(t, err, text)
	}
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-11-30": now.Add(-32 * time.Hour), "2026-12-01 07:30": now.Add(-30 * time.Minute), "2026-12-01T07:30:05": now.Add(-29*time.Minute - 55*time.Second),
		"2026-12-01T08:00:00+01:00": now.Add(-time.Hour), "3h": now.Add(-3 * time.Hour),
	} {
		var w when
		require.NoError(t, w.Set(text))
		require.True(t, want.Equal(w.time(now)), text)
	}
	require.True(t, (&when{}).time(now).IsZero())
	for _, text := range []string{"", "yesterday", "2026-13-01", "08:00", "-1h"} {
		require.Error(t, (&when{}).Set(text), text)
	}
}

// Ages are by the clock of Redis, so that a wrong one of this machine does no harm.
func TestAgesAreByTheServersClock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}", pawl.Delay(5*time.Hour+30*time.Minute))
	for _, wrong := range []time.Duration{-1000 * time.Hour, 1000 * time.Hour} {
		got := r.pawl(words("jobs emails --text --since 1h"), func(w *world) { w.now = func() time.Time { return time.Now().Add(wrong) } })
		require.Contains(t, got.out, "due in 5h", got.err)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}")
	require.NoError(t, r.rdb.SAdd(t.Context(), "pawl:queues", "x"+evil, "--yes", "-y").Err())
	for line, want := range map[string]string{
		"stats|": "emails\n:4\n", "dead|redrive|": "emails\n:4\n", "stats|emails|": ":4\n",
		"jobs|emails|--state|": "ready\ndelayed\nrunning\nparked\ndead\ndone\n:4\n", "purge|emails|--state|": "ready\ndelayed\nparked\ndead\ndone\n:4\n",
		"dead|list|emails|--reason|": "exhausted\npermanent\nundecodable\ncrashed\ncorrupt\nexpired\nunhandled\n:4\n",
		"completion|":                "bash\nzsh\nfish\npowershell\n:4\n",
	} {
		got := r.pawl(append([]string{"__complete"}, strings.Split(line, "|")...))
		require.Zero(t, got.code)
		require.Equal(t, want, got.out, line)
	}
	got := call(t.Context(), []string{"__complete", "stats", ""}, env("REDIS_URL", "redis://127.0.0.1:1"))
	require.Equal(t, ":4\n", got.out, "Redis is away")
	got = call(t.Context(), []string{"__complete", "dea", ""})
	require.Zero(t, got.code)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		got := call(t.Context(), []string{"completion", shell})
		require.Zero(t, got.code)
		require.Greater(t, len(got.out), 1000, shell)
	}
}

func TestAPayloadComesFromAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.pawl(words("enqueue emails --kind welcome --payload-file -"), typing(`{"user_id": 42}`))
	require.Zero(t, got.code, got.err)
	got = r.pawl(words("jobs emails --json"))
	require.Contains(t, got.out, `"payload":"{\"user_id\": 42}"`)
	got = r.pawl(words("enqueue emails --kind welcome --payload-file /nowhere"))
	require.Equal(t, exitUsage, got.code)
	got = r.pawl(words("enqueue emails --kind welcome --payload-file -"), typing(`"`+strings.Repeat("x", largestPayload)+`"`))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "16 MiB")
}
