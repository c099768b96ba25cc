package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// arguments demands arguments by their names: "queue", "queue [id...]" or so, of which
// those in brackets may be left out, and dots mean any number.
func arguments(names string) cobra.PositionalArgs {
	least, most := 0, 0
	for name := range strings.FieldsSeq(names) {
		if !strings.HasPrefix(name, "[") {
			least++
		}
		if most++; strings.Contains(name, "...") {
			most = 1 << 20
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			missing := strings.Fields(names)[len(args)]
			return usagef("the %s is missing: %s", strings.TrimSuffix(missing, "..."), synopsis(cmd))
		case len(args) > most:
			return usagef("%q is one argument too many: %s", args[most], synopsis(cmd))
		}
		return nil
	}
}

// span is a flag with a duration, which may have days: 90s, 2h, 7d, 1d12h.
type span time.Duration

func (s *span) String() string {
	if *s == 0 {
		return "" // which the help shows as no default
	}
	return time.Duration(*s).String()
}
func (s *span) Type() string { return "duration" }

// Set is one of pflag.Value.
func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	*s = span(d)
	return err
}

func parseSpan(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is no duration above 0, such as 90s, 2h or 7d", text)
	days, rest, ok := strings.Cut(text, "d")
	if !ok {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, wrong
	}
	d := time.Duration(n) * 24 * time.Hour
	if rest != "" {
		more, err := time.ParseDuration(rest)
		if err != nil {
			return 0, wrong
		}
		d += more
	}
	if d <= 0 {
		return 0, wrong
	}
	return d, nil
}

// when is a flag with a time, or with how long ago it was.
type when struct {
	at   time.Time
	ago  time.Duration
	text string
}

func (w *when) String() string { return w.text }
func (w *when) Type() string   { return "time" }

// Set is one of pflag.Value.
func (w *when) Set(text string) error {
	w.text = text
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			w.at = at
			return nil
		}
	}
	ago, err := parseSpan(text)
	if err != nil {
		return fmt.Errorf("%q is no time, such as 2026-12-01, 2026-12-01T08:30:00Z or, that long ago, 90m or 7d", text)
	}
	w.ago = ago
	return nil
}

// time is the time that is meant at now; zero if the flag was not given.
func (w *when) time(now time.Time) time.Time {
	if w.ago > 0 {
		return now.Add(-w.ago)
	}
	return w.at
}

// header is a flag with a header: key=value.
type header struct{ pawl.Header }

func (h *header) String() string {
	if h.Key == "" {
		return ""
	}
	return h.Key + "=" + h.Value
}
func (h *header) Type() string { return "key=value" }

// Set is one of pflag.Value.
func (h *header) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is no key=value", text)
	}
	h.Header = pawl.Header{Key: key, Value: value}
	return nil
}

// jobFilter is a pawl.Filter by flags.
type jobFilter struct {
	kind         string
	header       header
	since, until when
	limit        limit
}

func (f *jobFilter) add(cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "of this `kind`")
	flags.Var(&f.header, "header", "with this header")
	flags.Var(&f.since, "since", "enqueued at this time or later, or at most so long ago")
	flags.Var(&f.until, "until", "enqueued before this time, or longer ago")
	addLimit(cmd, &f.limit, usage)
}

// limit is a flag with a number of jobs: -1 if it was not given.
type limit int

func (l *limit) String() string {
	if *l < 0 {
		return "" // which the help shows as no default
	}
	return strconv.Itoa(int(*l))
}
func (l *limit) Type() string { return "number" }

// Set is one of pflag.Value.
func (l *limit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number of jobs: give 1 or more, or 0 for all", text)
	}
	*l = limit(n)
	return nil
}

func addLimit(cmd *cobra.Command, l *limit, usage string) {
	*l = -1
	cmd.Flags().Var(l, "limit", usage)
}

func (f *jobFilter) filter(now time.Time) (pawl.Filter, error) {
	since, until := f.since.time(now), f.until.time(now)
	return pawl.Filter{Kind: f.kind, Header: f.header.Header, Since: since, Until: until, Limit: int(max(0, f.limit))}, checkSpan(since, until)
}

func checkSpan(since, until time.Time) error {
	if !since.IsZero() && !until.IsZero() && since.After(until) {
		return usagef("--since is after --until, and nothing is in between: exchange them")
	}
	return nil
}

// empty reports whether all jobs match.
func (f *jobFilter) empty() bool {
	return f.kind == "" && f.header.Key == "" && f.since.text == "" && f.until.text == "" && f.limit <= 0
}

// deaths is a flag with a number of deaths.
type deaths int

func (d *deaths) String() string {
	if *d == 0 {
		return "" // which the help shows as no default
	}
	return strconv.Itoa(int(*d))
}
func (d *deaths) Type() string { return "many" }

// Set is one of pflag.Value.
func (d *deaths) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no number of deaths: give 1 or more, or 0 for never", text)
	}
	*d = deaths(n)
	return nil
}

// print is a flag with the fingerprint of a group: what is none would match nothing, and
// look as if nothing were dead.
type print string

var printPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (p *print) String() string { return string(*p) }
func (p *print) Type() string   { return "fingerprint" }

// Set is one of pflag.Value.
func (p *print) Set(text string) error {
	text = strings.ToLower(text)
	if !printPattern.MatchString(text) {
		return fmt.Errorf("%q is no fingerprint: it has 16 hex digits, as pawl dead groups shows it", text)
	}
	*p = print(text)
	return nil
}

// deadFilter is a pawl.DeadFilter by flags.
type deadFilter struct {
	kind, reason, text string
	fingerprint        print
	since, until       when
	limit              limit
}

func (f *deadFilter) add(a *app, cmd *cobra.Command, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "of this `kind`")
	flags.StringVar(&f.reason, "reason", "", "that died of this `reason`: "+strings.Join(reasons(), ", "))
	flags.StringVar(&f.text, "error", "", "whose error has this `text` in it")
	flags.Var(&f.fingerprint, "fingerprint", "of the group with this fingerprint; see: pawl dead groups")
	flags.Var(&f.since, "since", "that died at this time or later, or at most so long ago")
	flags.Var(&f.until, "until", "that died before this time, or longer ago")
	addLimit(cmd, &f.limit, usage)
	complete(cmd, "reason", reasons()...)
	_ = cmd.RegisterFlagCompletionFunc("fingerprint", a.completePrint)
}

func (f *deadFilter) filter(now time.Time) (pawl.DeadFilter, error) {
	if f.reason != "" && !slices.Contains(reasons(), f.reason) {
		return pawl.DeadFilter{}, usagef("there is no --reason %q: give %s", f.reason, strings.Join(reasons(), ", "))
	}
	since, until := f.since.time(now), f.until.time(now)
	return pawl.DeadFilter{Kind: f.kind, Reason: pawl.DeadReason(f.reason), Error: f.text, Fingerprint: string(f.fingerprint),
		Since: since, Until: until, Limit: int(max(0, f.limit))}, checkSpan(since, until)
}

// chooses reports whether some dead jobs match and others do not, whatever the limit.
func (f *deadFilter) chooses() bool {
	return f.kind+f.reason+f.text+string(f.fingerprint)+f.since.text+f.until.text != ""
}

// check says which dead jobs are meant: those of filters, or all.
func (f *deadFilter) check(all bool, ids string) error {
	switch {
	case all && f.chooses():
		return usagef("--all means all dead jobs, and the filters only some: leave out one of them")
	case !all && !f.chooses() && f.limit <= 0:
		return usagef("which dead jobs? Give %sfilters, or --all", ids)
	}
	return nil
}

func reasons() (names []string) {
	for _, r := range []pawl.DeadReason{pawl.ReasonExhausted, pawl.ReasonPermanent, pawl.ReasonUndecodable, pawl.ReasonCrashed,
		pawl.ReasonCorrupt, pawl.ReasonExpired, pawl.ReasonUnhandled} {
		names = append(names, string(r))
	}
	return names
}

// states are what --state takes; done is all that are over, cancelled and discarded too.
func states() (names []string) {
	for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateRunning, pawl.StateParked, pawl.StateDead, pawl.StateDone} {
		names = append(names, string(s))
	}
	return names
}

func parseStates(names []string, allowed ...string) ([]pawl.State, error) {
	var list []pawl.State
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return nil, usagef("there is no --state %q: give %s", name, strings.Join(allowed, ", "))
		}
		list = append(list, pawl.State(name))
	}
	return list, nil
}

// parseIDs reads the ids of jobs.
func parseIDs(texts []string) ([]pawl.ID, error) {
	var ids []pawl.ID
	for _, text := range texts {
		id, err := uuid.Parse(text)
		if err != nil || len(text) != 36 {
			return nil, usagef("%q is no id of a job: an id is such as 01977420-dc7b-71c8-8001-23456789abcd", text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
