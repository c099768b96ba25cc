package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// addYes adds the flag by which a command does not ask.
func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// confirm asks whether something that cannot be undone is meant, unless it was said before.
// It is meant if the answer is "y", "yes", or the word that is wanted.
func (a *app) confirm(ctx context.Context, s *session, yes bool, question, word string) error {
	if yes {
		return nil
	}
	if !a.inTerminal || !a.errTerminal {
		return refusedf("%s (Redis at %s)? It cannot be undone, and nobody can be asked here: give --yes", question, s.where)
	}
	hint := "y/N"
	if word != "" {
		hint = "its name, to go on"
	}
	if _, err := fmt.Fprintf(a.err, "Redis at %s\n%s? It cannot be undone. [%s] ", visible(s.where), visible(question), hint); err != nil {
		return err
	}
	answer, err := a.answer(ctx)
	switch {
	case err != nil:
		return err
	case word != "" && answer == word, word == "" && (strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")):
		return nil
	}
	return refusedf("nothing was done")
}

// answer reads a line. The goroutine of one that never comes ends with the program.
func (a *app) answer(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(a.in, 1<<10)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		done <- result{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		_, _ = fmt.Fprintln(a.err)
		return "", context.Cause(ctx)
	}
}
