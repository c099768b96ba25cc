package redistest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl/internal/redistest"
)

const orphanEnv = "REDISTEST_ORPHAN"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// not parallel: it is the body of a child process, and waits to be killed.
func TestOrphanChild(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("only as a child of the test below")
	}
	s := redistest.Start(t)
	for range 100 { // threads come and go; the server must not go with one
		done := make(chan struct{})
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends
			close(done)
		}()
		<-done
	}
	_, err := s.Client(t).Ping(t.Context()).Result()
	fmt.Printf("\nserver %s %v\n", s.Addr(), err)
	select {}
}

func TestServersDieWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	redistest.Start(t).Kill() // the skip or failure where there is no server
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphanChild$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var addr string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			var state string
			addr, state, _ = strings.Cut(rest, " ")
			require.Equal(t, "<nil>", state)
			break
		}
	}
	require.NotEmpty(t, addr)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	redistest.Eventually(t, "the orphan's port closes", func(context.Context) bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}
