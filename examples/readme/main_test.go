package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampleredis"
)

func TestTheProgramOfTheReadmeSendsItsMail(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // go run compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", ".")
	cmd.Env = append(os.Environ(), exampleredis.Env+"=")
	var logged bytes.Buffer // what the worker tells an operator
	cmd.Stderr = &logged
	out, err := cmd.Output()
	require.NoError(t, err, logged.String())
	require.Equal(t, "welcome, user 42\n", string(out))
}
