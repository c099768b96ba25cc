package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// What a terminal would obey: colours, the title of the window, a line that is overwritten,
// text that runs backwards, C1 controls, what is no UTF-8.
const (
	evil     = "\x1b[31mred\x1b]0;title\x07\r\n\t\x00\x7f\u0085\u009b31m\u202egnp.exe\u2066\u200b\U000e0001\xff\xfe"
	evilName = "\u202e\u2066evil\u200b\U000e0001" // where control characters are refused
)

// hostile makes a queue whose every text is evil.
func hostile(g *golden) {
	r := g.r
	q := r.client.Queue("emails")
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Name: "worker" + evil, Concurrency: 4, DrainTimeout: time.Millisecond})
	require.NoError(r.t, err)
	die, run := pawl.Define[json.RawMessage]("die"+evilName), pawl.Define[json.RawMessage]("run"+evilName)
	die.Handle(w, func(context.Context, *pawl.Job[json.RawMessage]) error {
		return pawl.Permanent(errors.New("error" + evil))
	})
	run.Handle(w, func(ctx context.Context, job *pawl.Job[json.RawMessage]) error {
		if err := job.Progress(ctx, 1, "note"+evil); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	r.work(w)
	put := func(name, kind, payload string, opts ...pawl.Option) pawl.ID {
		id := r.enqueue("emails", kind, payload, append(opts, pawl.Header{Key: "x", Value: "header" + strings.ToValidUTF8(evil, "")},
			pawl.Unique{Key: name + evil}, pawl.Idempotency{Key: name + evil})...)
		g.call(name, id)
		return id
	}
	put("dead", "die"+evilName, `"`+evilName+`"`)
	r.await("emails", func(st pawl.Stats) bool { return st.Dead == 1 })
	put("undecodable", "die"+evilName, "payload"+evil)
	running := put("running", "run"+evilName, `"`+evilName+`"`)
	r.await("emails", func(st pawl.Stats) bool { return st.Dead == 2 && st.Running == 1 })
	redistest.Eventually(r.t, "the progress", func(ctx context.Context) bool {
		j, err := q.Get(ctx, running)
		return err == nil && j.Percent == 1
	})
	require.NoError(r.t, q.Pause(r.t.Context(), pawl.Forever))
	put("ready", "wait"+evilName, "payload"+evil)
	require.NoError(r.t, r.rdb.SAdd(r.t.Context(), "pawl:queues", "queue"+evil).Err())
	require.NoError(r.t, r.rdb.Set(r.t.Context(), "pawl:{emails}:key"+evil, "x", 0).Err())
}

func TestHostileTextsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "hostile")
		hostile(g)
		g.both("queues")
		g.both("stats")
		g.both("workers")
		g.both("jobs", "emails")
		g.both("jobs", "emails", "--state", "dead")
		for _, name := range []string{"ready", "running", "dead", "undecodable"} {
			g.both("job", "emails", "@"+name)
		}
		g.both("dead", "list", "emails")
		g.both("dead", "groups", "emails")
		g.both("dead", "show", "emails", "@undecodable")
		g.both("check", "emails")
		g.finish()
	})
}

// Arguments come back in errors and in questions: by a script, they may be anybody's.
func TestHostileArgumentsAreShownAndNotObeyed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}")
	for _, args := range [][]string{
		{evil}, {"stats", evil}, {"stats", "--" + evil}, {"job", "emails", evil}, {"dead", evil}, {"help", evil}, {"jobs", "emails", "--since", evil},
		{"jobs", "emails", "--state", evil}, {"schedules", "pause", "emails", evil}, {"schedules", "remove", "emails", evil}, {"destroy", evil, "--yes"},
		{"enqueue", "emails", "--payload", "{}", "--kind", evil}, {"enqueue", "emails", "--payload-file", evil, "--kind", "x"},
		{"dead", "redrive", "emails", someID, "--payload-file", evil},
		{"enqueue", "emails", "--payload", "{}", "--kind", "x", "--header", evil}, {"dead", "list", "emails", "--reason", evil},
		{"stats", "--namespace", evil}, {"stats", "--password-file", evil}, {"completion", evil}, {"jobs", "emails", "--limit", evil},
	} {
		for _, form := range []func(*world){func(*world) {}, terminal} {
			got := r.pawl(args, form, typing("n\n"))
			require.NotZero(t, got.code, "%q", args)
			requireHarmless(t, got.out+got.err, strings.Join(args, " "))
			require.Equal(t, 1, strings.Count(got.err, "pawl: "), "%q", got.err)
		}
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "plain": "plain", "日本 ñ €": "日本 ñ €", "a\nb\tc": `a\nb\tc`, "\x1b[0m": `\x1b[0m`, "\x00\x7f": `\x00\x7f`, "\u009b": `\u009b`,
		"\u202e": `\u202e`, "\xff": `\xff`, "\uFFFD": "\uFFFD", "\U000e0001": `\U000e0001`, `"\`: `"\`,
		"e\u0301": "e\u0301", "a\u00adb": `a\u00adb`,
	} {
		require.Equal(t, want, visible(text))
	}
}

// Letters that are not seen, or change the order of others, are written as escapes in both
// forms, wherever they stand: in a payload, a name, an error.
func TestLettersThatAreNotSeenAreShown(t *testing.T) {
	t.Parallel()
	var unseen []rune
	for _, span := range [][2]rune{
		{0x200b, 0x200f}, {0x2028, 0x202f}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xad, 0xad}, {0x61c, 0x61c}, {0x180b, 0x180f}, {0xfff9, 0xfffb},
		{0xe0001, 0xe007f}, {0xfe00, 0xfe0f}, {0xe0100, 0xe01ef}, {0x115f, 0x1160}, {0x3164, 0x3164}, {0xffa0, 0xffa0}, {0x34f, 0x34f},
		{0x17b4, 0x17b5}, {0x2800, 0x2800}, {0x1d173, 0x1d17a}, {0xa0, 0xa0}, {0x2000, 0x200a}, {0x3000, 0x3000},
	} {
		for r := span[0]; r <= span[1]; r++ {
			unseen = append(unseen, r)
		}
	}
	for _, r := range unseen {
		for _, text := range append(visibleLines("a"+string(r)+"b"), visible("a"+string(r)+"b")) {
			require.Regexp(t, `^a\\[uUx][0-9a-f]+b$`, text, "%U", r)
		}
		b, err := marshal(string(r))
		require.NoError(t, err)
		require.Regexp(t, `^"(\\u[0-9a-f]{4})+"$`, string(b), "%U", r)
		var back string
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, string(r), back)
	}
	for _, r := range unicode.Cf.R16 { // all that Unicode calls format controls
		require.NotContains(t, visible(string(rune(r.Lo))), string(rune(r.Lo)))
	}
	r := newRig(t)
	kind := "pay\u202e\u2066\u200b\ufeff\u3164\ufe0f\u2028"
	id := r.enqueue("emails", kind, `"`+kind+`"`).String()
	for _, line := range []string{"jobs emails", "job emails " + id} {
		for _, form := range []string{"--text", "--json"} {
			got := r.pawl(append(words(line), form))
			require.Zero(t, got.code, got.err)
			require.Contains(t, got.out, `pay\u202e\u2066\u200b\ufeff\u3164`, "a table cuts the rest")
			requireHarmless(t, got.out, line)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add(evil)
	f.Add(evilName)
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range append(visibleLines(text), visible(text)) {
			require.NotContains(t, line, "\n")
			requireHarmless(t, line, text)
		}
		b, err := marshal(map[string]string{"x": text})
		require.NoError(t, err)
		require.NotContains(t, string(b), "\n")
		requireHarmless(t, string(b), text)
		var back map[string]string
		require.NoError(t, json.Unmarshal(b, &back))
		if utf8.ValidString(text) {
			require.Equal(t, text, back["x"])
		}
	})
}
