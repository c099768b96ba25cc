package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// noFaketime says why a test of the server's clock did not run.
const noFaketime = "no libfaketime (Debian: apt-get install libfaketime)"

// StartWithClock is Start of a server whose clock SetClock can move. Its monotonic
// clock goes on as ever, as that of a machine does whose time is corrected. Where
// there is no libfaketime the test is skipped, or fails if PAWL_REQUIRE_REDIS is
// set.
func StartWithClock(t testing.TB, args ...string) *Server {
	t.Helper()
	demand(t)
	lib := faketime()
	switch {
	case lib != "":
	case os.Getenv(RequireEnv) != "":
		t.Fatalf("%s, and %s is set", noFaketime, RequireEnv)
	default:
		t.Skip("SKIPPED: " + noFaketime)
	}
	clock := filepath.Join(t.TempDir(), "clock")
	setClock(t, clock, 0)
	return startIn(t, &Server{t: t, clock: clock, env: []string{
		// libc before jemalloc, which asks for the time while libfaketime starts.
		"LD_PRELOAD=" + lib + " libc.so.6",
		"FAKETIME_TIMESTAMP_FILE=" + clock, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1",
	}}, args)
}

// SetClock sets the clock of a StartWithClock off the machine's by an offset, and
// returns when the server has it.
func (s *Server) SetClock(offset time.Duration) {
	s.t.Helper()
	setClock(s.t, s.clock, offset)
	Eventually(s.t, fmt.Sprintf("the clock is off by %v", offset), func(ctx context.Context) bool {
		now, err := s.admin().Time(ctx).Result()
		return err == nil && (time.Until(now)-offset).Abs() < 10*time.Second
	})
}

// setClock replaces the file, so that nobody reads half of it.
func setClock(t testing.TB, clock string, offset time.Duration) {
	t.Helper()
	err := os.WriteFile(clock+".new", fmt.Appendf(nil, "%+.3f\n", offset.Seconds()), 0o600)
	if err == nil {
		err = os.Rename(clock+".new", clock)
	}
	if err != nil {
		t.Fatalf("redistest: clock: %v", err)
	}
}

// faketime is the path of the library, or "".
func faketime() string {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
