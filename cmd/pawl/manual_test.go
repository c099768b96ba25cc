package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// pages are the command and all below it, in the order of the help.
func pages(cmd *cobra.Command) (all []*cobra.Command) {
	cmd.InitDefaultHelpFlag()
	all = append(all, cmd)
	for _, sub := range cmd.Commands() {
		all = append(all, pages(sub)...)
	}
	return all
}

// root is the command tree as a call makes it.
func root() *cobra.Command {
	a := &app{}
	root := a.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultVersionFlag()
	return root
}

// readable is the manual as README.md has it.
func readable(t *testing.T) string {
	var b strings.Builder
	for _, cmd := range pages(root()) {
		title := cmd.CommandPath()
		if isTopic(cmd) {
			title = "pawl help " + cmd.Name()
		}
		got := call(t.Context(), append([]string{"help"}, strings.Fields(cmd.CommandPath())[1:]...))
		require.Zero(t, got.code, got.err)
		fmt.Fprintf(&b, "### %s\n\n```text\n%s```\n\n", title, got.out)
	}
	return b.String()
}

func TestTheReadmeHasTheManual(t *testing.T) {
	t.Parallel()
	const rewrite = "README.md is not as the help: go test -run Readme -update rewrites it"
	const begin, end = "<!-- manual -->\n", "<!-- end of manual -->\n"
	file, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(file), begin)
	require.True(t, ok)
	written, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	manual := readable(t)
	if *update {
		require.NoError(t, os.WriteFile("README.md", []byte(before+begin+manual+end+after), 0o600))
		return
	}
	have := strings.Split(written, "\n")
	for i, line := range strings.Split(manual, "\n") {
		require.Less(t, i, len(have), rewrite)
		require.Equal(t, line, have[i], rewrite)
	}
	require.Equal(t, manual, written, rewrite)
}

func TestEachCommandIsExplained(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, cmd := range pages(root()) {
		seen++
		path := cmd.CommandPath()
		require.NotEmpty(t, cmd.Short, path)
		require.NotEmpty(t, cmd.Long, path)
		if !isTopic(cmd) {
			require.Contains(t, cmd.Example, "pawl ", path)
		}
		for line := range strings.Lines(manual(cmd)) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), helpWidth, "%s: %q", path, line)
		}
	}
	require.Greater(t, seen, 30)
}

// The examples of the help are commands that there are, with flags that they have.
func TestTheExamplesParse(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, cmd := range pages(root()) {
		for line := range strings.Lines(cmd.Example) {
			for _, one := range commandsIn(line) {
				tried++
				t.Run(strings.Join(one, " "), func(t *testing.T) {
					t.Parallel()
					// Where no Redis is, a command that was understood ends as away.
					got := call(t.Context(), one, env("REDIS_URL", "redis://127.0.0.1:1"), typing("{}"))
					require.Contains(t, []int{exitOK, exitAway}, got.code, got.err)
				})
			}
		}
	}
	require.Greater(t, tried, 30)
}

// commandsIn are the calls of pawl in a line of shell.
func commandsIn(line string) (calls [][]string) {
	for part := range strings.SplitSeq(line, "|") {
		part = regexp.MustCompile(`[<>] .*|^source|^ *xargs`).ReplaceAllString(part, "")
		part = strings.NewReplacer("<(", "", ")", "").Replace(part)
		args := shellWords(part)
		if len(args) == 0 || args[0] != "pawl" {
			continue
		}
		if strings.Contains(line, "xargs") && args[1] == "run-now" {
			args = append(args, "01977420-dc7b-71c8-8001-23456789abcd")
		}
		calls = append(calls, args[1:])
	}
	return calls
}

// shellWords splits a line at spaces that are in no quotes.
func shellWords(line string) (args []string) {
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		args = append(args, strings.Trim(word, `'"`))
	}
	return args
}

func TestExitCodesAreDocumented(t *testing.T) {
	t.Parallel()
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitNotFound, exitAway, exitRefused, exitFound, exitUnconfirmed, exitInterrupted} {
		require.Regexp(t, fmt.Sprintf(`(?m)^ *%d  [A-Z]`, code), codesText)
	}
}
