package redistest

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// StartReplica starts a server as Start does, replicates the master to it and
// returns when it has caught up. Lag has it fall behind.
func StartReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	// A master waits 5 s for more replicas before it sends the first copy.
	if err := master.admin().ConfigSet(t.Context(), "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatalf("redistest: replica: %v", err)
	}
	w := newWire(t, master.Addr())
	host, port, _ := net.SplitHostPort(w.listener.Addr().String())
	s := Start(t, append([]string{"--replicaof", host, port}, args...)...)
	s.wire = w
	s.AwaitSync(t, master)
	return s
}

// AwaitSync returns when the replica has all that the master has. It waits for
// ever longer writes if others go on writing.
func (s *Server) AwaitSync(t testing.TB, master *Server) {
	t.Helper()
	ours, theirs := s.admin(), master.admin()
	Eventually(t, "the replica has caught up", func(ctx context.Context) bool {
		offset := infoField(ctx, theirs, "replication", "master_repl_offset")
		return infoField(ctx, ours, "replication", "master_link_status") == "up" && offset != "" &&
			infoField(ctx, ours, "replication", "slave_repl_offset") == offset
	})
}

// Lag stops the flow from the master to a server that StartReplica started,
// while both still believe in it. What the master does from here on stays with
// the master: it arrives after a CatchUp, and never if the replica is promoted.
func (s *Server) Lag() { s.wire.stop() }

// CatchUp ends a Lag.
func (s *Server) CatchUp() { s.wire.start() }

// Promote makes a master of a replica.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	if err := s.admin().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatalf("redistest: promote: %v", err)
	}
}

// Role is "master" or "slave", and "" if the server does not answer.
func (s *Server) Role(ctx context.Context) string {
	return infoField(ctx, s.admin(), "replication", "role")
}

// infoField is one value of INFO, or "".
func infoField(ctx context.Context, rdb *redis.Client, section, name string) string {
	info, _ := rdb.Info(ctx, section).Result()
	return lineField(info, name)
}

// lineField is the value in a line "name:value".
func lineField(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}
