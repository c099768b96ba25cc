package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
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
		Long: `Writes a script with which a shell completes commands, flags, their values, and the
names of queues, for which it asks Redis.`,
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
	a.flags.timeout = min(a.flags.timeout, completionPatience)
	var names []string
	_ = a.with(cmd.Context(), func(ctx context.Context, s *session) error {
		all, err := s.Queues(ctx)
		for _, name := range all {
			if queueName.MatchString(name) {
				names = append(names, name)
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
