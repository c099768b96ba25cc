package main

import (
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
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "welcome, user 42\n", string(out))
}
