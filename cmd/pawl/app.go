package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// world is what a command sees of the machine, so that a test can give it another one.
type world struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	now      func() time.Time
	// Which of them are terminals, and how many columns that of out has; 0 is not known.
	inTerminal, outTerminal, errTerminal bool
	width                                int
	// ticks is how often progress is shown to a terminal, and written to anything else.
	ticks, lines time.Duration
}

// system is the machine's own.
func system() world {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width = 0
	}
	return world{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, now: time.Now,
		inTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		outTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		errTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		width:       width,
		ticks:       500 * time.Millisecond, lines: 10 * time.Second,
	}
}

// app is one call of the program.
type app struct {
	world
	out *bufio.Writer // in the place of the world's

	flags   globalFlags
	ran     bool     // a command was found, and what it was given could be read
	secrets []string // never to be shown; see scrub
}

// globalFlags are those of every command.
type globalFlags struct {
	redis, passwordFile, namespace string
	cluster, sentinel              bool
	timeout                        time.Duration
	json, text                     bool
}

// silent is go-redis's logger: what it would say of a connection is the command's error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

var hushed sync.Once

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, w world) int {
	hushed.Do(func() { redis.SetLogger(silent{}) })
	a := &app{world: w, out: bufio.NewWriterSize(output{w.out}, 64<<10)}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if flushed := a.out.Flush(); err == nil {
		err = flushed
	}
	if err == nil {
		return exitOK
	}
	var f *failure
	if !a.ran && !errors.As(err, &f) { // cobra's own: there is no such command
		err = &failure{code: exitUsage, err: err}
	}
	if text := a.plain(err); text != "" {
		_, _ = fmt.Fprintln(a.err, "pawl: "+visible(text))
	}
	return exitCode(err)
}

// root is the command without a name, with all others below it.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl <command>",
		Short: "look after the queues of pawl",
		Long: `pawl shows what is in the queues of pawl (https://github.com/pawlq/pawl), and
repairs, moves and removes it, in any Redis that the programs of these queues use.`,
		Example: `export REDIS_URL=redis://redis.internal:6379/0
pawl stats
pawl jobs emails --state running
pawl dead groups emails
pawl dead redrive emails --fingerprint 5f1c0d3a9b7e2846 --over 10m --stop-after 20`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.group,
		PersistentPreRunE: a.before,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetIn(a.in)
	root.SetVersionTemplate("pawl {{.Version}}\n")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _, _ = io.WriteString(a.out, manual(cmd)) })
	root.InitDefaultHelpFlag()
	root.Flags().Lookup("help").Usage = "this help; also of each command"
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "the version of this program"
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		hint := ""
		if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
			hint = meant(flagNames(cmd), "--"+unknown.GetSpecifiedName())
		}
		return usagef("%w%s; see: pawl help%s", err, hint, below(cmd))
	})
	a.addGlobalFlags(root)
	root.AddCommand(
		a.statsCommand(), a.queuesCommand(), a.workersCommand(), a.jobsCommand(), a.jobCommand(),
		a.deadCommand(), a.pauseCommand(), a.resumeCommand(), a.cancelCommand(), a.runNowCommand(),
		a.rescheduleCommand(), a.schedulesCommand(), a.purgeCommand(), a.destroyCommand(),
		a.checkCommand(), a.doctorCommand(), a.enqueueCommand(), a.completionCommand(),
	)
	root.AddCommand(topics()...)
	root.SetHelpCommand(a.helpCommand(root))
	return root
}

func (a *app) addGlobalFlags(root *cobra.Command) {
	f := root.PersistentFlags()
	f.SortFlags = false
	f.StringVar(&a.flags.redis, "redis", "", "`URL` of Redis, without a password; default $REDIS_URL")
	f.StringVar(&a.flags.passwordFile, "password-file", "", "`file` with the password of Redis; default $PAWL_REDIS_PASSWORD")
	f.BoolVar(&a.flags.cluster, "cluster", false, "the URL is of a node of a cluster")
	f.BoolVar(&a.flags.sentinel, "sentinel", false, "the URL is of a Sentinel, with ?master_name=…")
	f.StringVar(&a.flags.namespace, "namespace", "", "`name` that all keys begin with; default $PAWL_NAMESPACE, or pawl")
	a.flags.timeout = 5 * time.Second
	f.Var((*span)(&a.flags.timeout), "timeout", "how long Redis may be silent before the command gives up")
	f.BoolVar(&a.flags.json, "json", false, "JSON, also to a terminal")
	f.BoolVar(&a.flags.text, "text", false, "text for people, also into a pipe or a file")
}

// before checks what no single flag can.
func (a *app) before(*cobra.Command, []string) error {
	switch {
	case a.flags.json && a.flags.text:
		return usagef("--json and --text exclude each other")
	case a.flags.cluster && a.flags.sentinel:
		return usagef("--cluster and --sentinel exclude each other")
	case a.flags.timeout <= 0:
		return usagef("--timeout is %v: give a time above 0", a.flags.timeout)
	}
	a.ran = true
	return nil
}

// group is run where a command is missing, as in "pawl dead".
func (a *app) group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("there is no command %q%s; see: pawl help%s", args[0], meant(cmd, args[0]), below(cmd))
	}
	return usagef("give a command; see: pawl help%s", below(cmd))
}

// meant asks for the commands whose names are like what was written.
func meant(cmd *cobra.Command, written string) string {
	cmd.SuggestionsMinimumDistance = 2
	like := cmd.SuggestionsFor(written)
	if len(like) == 0 {
		return ""
	}
	return "; do you mean " + strings.Join(like, " or ") + "?"
}

// flagNames are the flags of a command as if they were commands, for meant.
func flagNames(cmd *cobra.Command) *cobra.Command {
	names := &cobra.Command{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: "--" + f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return names
}

// below is the path of a command after "pawl".
func below(cmd *cobra.Command) string {
	path := cmd.CommandPath()
	return path[len(cmd.Root().Name()):]
}

// version is that of the module, as go install has noted it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
