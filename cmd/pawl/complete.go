package main

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// queueName is what pawl takes for a name. Anything else on the list of queues is somebody
// else's, and would be refused.
var queueName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// completionPatience is how long a shell is kept waiting by a Redis that does not answer.
const completionPatience = time.Second

func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "completion for a shell",
		Long: `Writes a script with which a shell completes commands, flags, their values, and, for
which it asks Redis, the names of queues, the ids of dead jobs and the fingerprints
of their groups.`,
		Example: `source <(pawl completion bash)
pawl completion zsh > "${fpath[1]}/_pawl"
pawl completion fish > ~/.config/fish/completions/pawl.fish`,
		Args:      arguments("shell"),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return usagef("there is no completion for %q: give %s", args[0], strings.Join(names, ", "))
			}
			return write(cmd.Root(), a.out)
		},
	}
}

// complete offers words for the value of a flag.
func complete(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completeQueue offers the queues for the first argument. If Redis is away it offers none.
func (a *app) completeQueue(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	a.forCompletion(cmd.Context(), func(ctx context.Context, s *session) error {
		all, err := s.Queues(ctx)
		for _, name := range all {
			// One that begins with a dash would be a flag: "destroy --yes" asks nothing.
			if queueName.MatchString(name) && !strings.HasPrefix(name, "-") {
				names = append(names, name)
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// forCompletion asks Redis, and no longer than a shell may be kept waiting. What came by
// then is offered: of an error a shell can say nothing.
func (a *app) forCompletion(ctx context.Context, ask func(context.Context, *session) error) {
	a.flags.timeout = min(a.flags.timeout, completionPatience)
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	_ = a.with(ctx, ask)
}

// completionMost is how many dead jobs are offered.
const completionMost = 100

// completeDead offers the queues, and then the ids of dead jobs with what they died of: at
// most so many of them, 0 for any number.
func (a *app) completeDead(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return a.completeQueue(cmd, args, word)
		}
		if most > 0 && len(args) > most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		a.forCompletion(cmd.Context(), func(ctx context.Context, s *session) error {
			for d, err := range s.Queue(args[0]).Dead().List(ctx, pawl.DeadFilter{}) {
				if err != nil || len(ids) == completionMost {
					return err
				}
				if id := d.ID.String(); strings.HasPrefix(id, word) && !slices.Contains(args[1:], id) {
					ids = append(ids, id+"\t"+described(d.Kind+": "+d.Error))
				}
			}
			return nil
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePrint offers the fingerprints of the queue that was given, with how many died so,
// and of what.
func (a *app) completePrint(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var prints []string
	a.forCompletion(cmd.Context(), func(ctx context.Context, s *session) error {
		groups, err := s.Queue(args[0]).Dead().Groups(ctx)
		for _, g := range groups {
			if strings.HasPrefix(g.Fingerprint, word) {
				prints = append(prints, g.Fingerprint+"\t"+described(count(int64(g.Count))+" "+g.Kind+": "+g.Example))
			}
		}
		return err
	})
	return prints, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// described is a description as a shell shows it, in one line.
func described(text string) string {
	return columns.Truncate(visible(text[:min(len(text), 1<<10)]), 60, "…")
}
