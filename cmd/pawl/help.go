package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 90

// manual is the help of a command: the sections of a man page.
func manual(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(name, text string) {
		if text = strings.TrimRight(text, "\n "); text != "" {
			fmt.Fprintf(&b, "%s\n%s\n\n", name, indent(text))
		}
	}
	topic := isTopic(cmd)
	if help := cmd.Flags().Lookup("help"); help != nil && cmd.HasParent() {
		help.Hidden = true // it is said once
	}
	section("NAME", cmd.CommandPath()+" - "+cmd.Short)
	if !topic {
		section("SYNOPSIS", synopsis(cmd))
	}
	section("DESCRIPTION", cmd.Long)
	section("COMMANDS", commands(cmd, false))
	section("EXAMPLES", cmd.Example)
	section("OPTIONS", options(cmd.LocalNonPersistentFlags()))
	switch {
	case !cmd.HasParent():
		section("OPTIONS OF EVERY COMMAND", options(cmd.PersistentFlags()))
		section("MORE", commands(cmd, true))
	case !topic:
		section("SEE ALSO", "pawl help               --redis, --json and the other options of every command\npawl help exit-codes    what the exit code says")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// isTopic tells a page of help from a command.
func isTopic(cmd *cobra.Command) bool { return !cmd.Runnable() && !cmd.HasSubCommands() }

func synopsis(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	if _, args, ok := strings.Cut(cmd.Use, " "); ok {
		line += " " + args
	}
	if cmd.HasAvailableLocalFlags() {
		line += " [options]"
	}
	return line
}

// commands lists what is below a command: the commands, or the topics.
func commands(cmd *cobra.Command, topics bool) string {
	var b strings.Builder
	for _, sub := range cmd.Commands() {
		if sub.Hidden || isTopic(sub) != topics {
			continue
		}
		name := sub.Name()
		if topics {
			name = "pawl help " + name
		}
		fmt.Fprintf(&b, "%-22s %s\n", name, sub.Short)
	}
	return b.String()
}

func options(flags *pflag.FlagSet) string {
	var lines []string
	for line := range strings.Lines(flags.FlagUsagesWrapped(helpWidth - 4)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			line = "    " + line
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [command or topic]",
		Short:   "this help, or that of a command",
		Long:    `Shows the help of a command or a topic; "pawl stats --help" is the same.`,
		Example: "pawl help dead redrive\npawl help exit-codes",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			above, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range above.Commands() {
				names = append(names, sub.Name()+"\t"+sub.Short)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd := root
			for _, name := range args {
				below, _, err := cmd.Find([]string{name})
				if err != nil || below == cmd {
					return usagef("there is no command or topic %q%s; see: pawl help", strings.Join(args, " "), meant(cmd, name))
				}
				cmd = below
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			_, err := io.WriteString(a.out, manual(cmd))
			return err
		},
	}
}

const connectionText = `Which Redis: --redis, or the variable REDIS_URL.

    redis://user@host:6379/0         database 0, or the number at the end
    rediss://user@host:6380          with TLS; SSL_CERT_FILE names a CA of your own
    unix:///run/redis/redis.sock     a socket
    --cluster redis://node:6379      a cluster, by any of its nodes; more with
                                     ?addr=node2:6379&addr=node3:6379
    --sentinel redis://s1:26379/0?master_name=mymaster&addr=s2:26379
                                     the master that Sentinel names

The options after "?" are those of go-redis (ParseURL, ParseClusterURL and
ParseFailoverURL), such as read_timeout=10s.

The password is never an argument, which every user of the machine can see, and is
never shown. It is that of --password-file, else of PAWL_REDIS_PASSWORD, else of
the URL in REDIS_URL. In a URL the characters / ? # @ % of a password are written
%2F %3F %23 %40 %25. The rights that the user needs are in docs/security.md; of
these, pawl stats and the other commands that only look need those of reading.

The namespace, which all keys begin with, is --namespace, or PAWL_NAMESPACE, or pawl.
It has to be that of the programs, or their queues are not seen.

--timeout is how long Redis may be silent. A command that has more to do goes on as
long as Redis answers; one that was not answered for so long ends with code 4, or,
if it may have been done all the same, with 7.`

const timesText = `A time is 2026-12-24T08:00:00Z (RFC 3339, with any zone), or in UTC 2026-12-24,
"2026-12-24 08:00" or "2026-12-24 08:00:30".

A duration is 90s, 15m, 2h, 7d or 1d12h. --since 2h and --until 7d count back from
now; --in, --for and --delay count on from it. "Now" is by the clock of Redis, so
it does not matter if that of this machine is wrong.`

// topics are pages of help without a command.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "connection", Short: "which Redis, and its password", Long: connectionText},
		{Use: "output", Short: "text and JSON", Long: outputText},
		{Use: "fields", Short: "the fields of the JSON", Long: fieldsText()},
		{Use: "times", Short: "how times and durations are written", Long: timesText},
		{Use: "exit-codes", Short: "what the exit code says", Long: codesText},
	}
}
