// Command bench runs pawl and its peers on the same work and prints one table. See
// README.md for what it measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	// Whatever ends this ends the servers, too: SIGINT through the context, kill -9
	// on Linux by the kernel.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	short               bool
	list                bool
	rounds              int
	only, systems       string
	json, svg, fromJSON string
	resume              bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.short, "short", false, "small N, one round, and only systems that start and stop fast unless -systems names more: to see that all of it works")
	f.BoolVar(&o.list, "list", false, "list the workloads and the systems")
	f.IntVar(&o.rounds, "rounds", 3, "measure each this many times and take the median")
	f.StringVar(&o.only, "only", "", "only workloads whose name matches this `regexp`")
	f.StringVar(&o.systems, "systems", "", "only these systems, a list with commas; see -list")
	f.StringVar(&o.json, "json", "", "write the results to this `file` as JSON")
	f.BoolVar(&o.resume, "resume", false, "go on with the run that -json's file is of: measure the workloads that it lacks")
	f.StringVar(&o.svg, "svg", "", "write a chart to this `file`")
	f.StringVar(&o.fromJSON, "from", "", "measure nothing: take the results from this `file` of an earlier -json")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("what is %q?", f.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("%d rounds", o.rounds)
	case o.resume && o.json == "":
		return o, errors.New("-resume needs the -json file to go on with")
	}
	if o.short {
		o.rounds = 1
	}
	return o, nil
}

func bench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == childWord {
		return child(ctx, args[1], os.Stdin, stdout)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	h, err := o.harness(stderr)
	if err != nil {
		return err
	}
	if o.list {
		return h.list(stdout)
	}
	if o.json != "" {
		h.save = func(r *report) error { return r.writeJSON(o.json) }
	}
	if o.resume {
		if h.earlier, err = readJSON(o.json); err != nil {
			return err
		}
	}
	var r *report
	if o.fromJSON != "" {
		r, err = readJSON(o.fromJSON)
	} else {
		r, err = h.run(ctx)
	}
	if r != nil {
		err = errors.Join(err, o.write(r, stdout))
	}
	if err != nil {
		return err
	}
	if n := r.failures(); n > 0 {
		return fmt.Errorf("%d values could not be measured", n)
	}
	return nil
}

// write gives a report all the forms that were asked for, but for JSON, which
// harness.save writes.
func (o options) write(r *report, stdout io.Writer) error {
	err := r.writeTable(stdout)
	if o.svg != "" {
		err = errors.Join(err, os.WriteFile(o.svg, []byte(r.svg()), 0o644))
	}
	return err
}

// harness has the workloads and systems that were asked for.
func (o options) harness(progress io.Writer) (*harness, error) {
	h := &harness{rounds: o.rounds, short: o.short, progress: progress}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	for _, w := range workloads() {
		if only.MatchString(w.name) {
			h.workloads = append(h.workloads, w)
		}
	}
	if len(h.workloads) == 0 {
		return nil, fmt.Errorf("no workload matches %q; -list lists them", o.only)
	}
	var names []string
	if o.systems != "" {
		names = strings.Split(o.systems, ",")
	}
	for _, s := range systems() {
		if i := slices.Index(names, s.name); i >= 0 {
			names = slices.Delete(names, i, i+1)
		} else if o.systems != "" || o.short && s.slow {
			continue
		}
		h.systems = append(h.systems, s)
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("no system %q; -list lists them", names[0])
	}
	return h, nil
}

func (h *harness) list(w io.Writer) error {
	var text strings.Builder
	for _, w := range h.workloads {
		fmt.Fprintf(&text, "%-14s N=%-9s %s\n", w.name, number(float64(w.n)), w.title)
	}
	text.WriteString("\n")
	for _, s := range h.systems {
		fmt.Fprintf(&text, "%-14s %s\n", s.name, s.settings)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
