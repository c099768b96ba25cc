package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
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
	} {
		require.Equal(t, want, visible(text))
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
