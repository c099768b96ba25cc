package pawl_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// flat counts what a part of a test holds, and nothing that the tests beside it
// do: goroutines by a label, which those that they start inherit, and connections
// at a proxy.
type flat struct {
	label string
	proxy *redistest.Proxy

	goroutines, connections int
}

// labelled runs fn, and labels the goroutines that come of it.
func labelled(label string, fn func()) {
	pprof.Do(context.Background(), pprof.Labels("test", label), func(context.Context) { fn() })
}

// newFlat counts for the first time.
func newFlat(t *testing.T, label string, proxy *redistest.Proxy) *flat {
	t.Helper()
	f := &flat{label: label, proxy: proxy}
	f.goroutines, f.connections = f.now(t)
	require.Positive(t, f.goroutines, "the label %q is on nothing", label)
	return f
}

func (f *flat) now(t *testing.T) (goroutines, connections int) {
	t.Helper()
	var dump bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&dump, 1))
	// "3 @ 0x…" and, if they have some, "# labels: {…}" in the next line.
	n := 0
	for lines := bufio.NewScanner(&dump); lines.Scan(); {
		if line := lines.Text(); strings.Contains(line, " @ 0x") {
			_, _ = fmt.Sscan(line, &n)
		} else if strings.HasPrefix(line, "# labels:") && strings.Contains(line, fmt.Sprintf("%q:%q", "test", f.label)) {
			goroutines += n
		}
	}
	return goroutines, f.proxy.Connections()
}

// still fails the test if it does not come down to what it was, or nearly so: a
// renewal may be under way, and the pool of go-redis keeps as many connections as were
// once used together, by a worker's loop and its round trips, the renewal, the beat and
// who enqueues.
func (f *flat) still(t *testing.T) {
	t.Helper()
	var goroutines, connections int
	defer func() {
		t.Logf("%d goroutines and %d connections, before %d and %d", goroutines, connections, f.goroutines, f.connections)
	}()
	redistest.Eventually(t, fmt.Sprintf("as few goroutines (%d) and connections (%d) as before", f.goroutines, f.connections), func(context.Context) bool {
		goroutines, connections = f.now(t)
		return goroutines <= f.goroutines+2 && connections <= f.connections+8
	})
}
