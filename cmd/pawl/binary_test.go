package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// The program itself, as it is installed: its exit codes, its standard streams, Ctrl-C.
func TestTheProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	binary := filepath.Join(t.TempDir(), "pawl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	command := func(args ...string) (*exec.Cmd, *bytes.Buffer, *lockedBuffer) {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		out, errs := &bytes.Buffer{}, &lockedBuffer{}
		cmd.Env = append(os.Environ(), "REDIS_URL=redis://"+r.addr)
		cmd.Stdout, cmd.Stderr = out, errs
		return cmd, out, errs
	}
	code := func(err error) int {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		require.NoError(t, err)
		return 0
	}
	for args, want := range map[string]struct {
		code     int
		out, err string
	}{
		"--version":         {exitOK, "pawl ", ""},
		"help":              {exitOK, "NAME\n    pawl - ", ""},
		"stats nobody":      {exitNotFound, "", "there is no queue nobody"},
		"bury":              {exitUsage, "", "there is no command"},
		"stats --redis x:1": {exitUsage, "", "--redis"},
		"enqueue emails --kind welcome --payload {}": {exitOK, `{"queue":"emails","id":"`, ""},
		"destroy emails":  {exitRefused, "", "--yes"},
		"completion bash": {exitOK, "__start_pawl", ""},
		"doctor":          {exitFound, `{"check":"version","status":"ok"`, ""},
	} {
		cmd, out, errs := command(words(args)...)
		require.Equal(t, want.code, code(cmd.Run()), "%s: %s", args, errs.String())
		require.Contains(t, out.String(), want.out, args)
		require.Contains(t, errs.String(), want.err, args)
	}

	r.bury("payments", "charge", strings.Split("declined declined declined declined", " ")...)
	cmd, out, errs := command("dead", "redrive", "payments", "--all", "--over", "1h")
	exited, err := redistest.StartTied(cmd)
	require.NoError(t, err)
	r.await("payments", func(st pawl.Stats) bool { return st.Total.Redriven == 1 })
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	<-exited
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode(), errs.String())
	require.Contains(t, out.String(), `"complete":false`)
	require.Contains(t, errs.String(), "interrupted")
	if !strings.Contains(out.String(), `"moved":1`) { // the answer was yet to come
		require.Contains(t, errs.String(), "may have been moved too")
	}
}
