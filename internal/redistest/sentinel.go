package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name under which Sentinels watch their master.
const MasterName = "pawl"

// Sentinels are three Sentinel processes that watch one master, two of which
// must agree that it is down: after a second without an answer.
type Sentinels struct {
	t     testing.TB
	addrs []string
	rdbs  []*redis.Client
}

// sentinelConf is not read only: a Sentinel keeps its state in it. Sentinel
// would have a replica that lags behind a wire replicate from the master itself
// after failover-timeout; hence that is long until Kill makes it short, or an
// election that found no winner would be held again as late as twice of it.
const sentinelConf = `port %d
bind 127.0.0.1
dir %q
sentinel monitor ` + MasterName + ` %s 2
sentinel down-after-milliseconds ` + MasterName + ` 1000
sentinel failover-timeout ` + MasterName + ` 60000
sentinel parallel-syncs ` + MasterName + ` 1
`

// StartSentinels returns when all of them know each other and the replicas.
// They end as the servers of Start do.
func StartSentinels(t testing.TB, master *Server, replicas ...*Server) *Sentinels {
	t.Helper()
	demand(t)
	s := &Sentinels{t: t}
	for range 3 {
		addr := startSentinel(t, strings.Replace(master.Addr(), ":", " ", 1))
		s.addrs = append(s.addrs, addr)
		rdb := clientOf(t, addr)
		s.rdbs = append(s.rdbs, rdb)
		// Without it greetings come every 2 s, a demotion takes 8 s, and pings are
		// so rare that a new master that lives is taken for dead. But five pings must
		// take longer than the second between two looks at a replica, or none is
		// thought fit. Servers before 7.0 do not know it.
		_ = rdb.Do(t.Context(), "SENTINEL", "DEBUG", "PING-PERIOD", "300", "PUBLISH-PERIOD", "500", "INFO-PERIOD", "500").Err()
	}
	Eventually(t, "the Sentinels know each other", func(ctx context.Context) bool {
		for _, rdb := range s.rdbs {
			m, _ := rdb.Do(ctx, "SENTINEL", "MASTER", MasterName).Result()
			if fieldOf(m, "num-other-sentinels") != "2" || fieldOf(m, "num-slaves") != strconv.Itoa(len(replicas)) ||
				fieldOf(m, "flags") != "master" {
				return false
			}
		}
		return true
	})
	return s
}

func startSentinel(t testing.TB, master string) (addr string) {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	var err error
	for range portTries {
		port := freePort()
		if err := os.WriteFile(conf, fmt.Appendf(nil, sentinelConf, port, dir, master), 0o600); err != nil {
			t.Fatalf("redistest: sentinel: %v", err)
		}
		var p *process
		if p, err = startProcess(binary, []string{conf, "--sentinel"}); err != nil {
			break
		}
		if err = p.await(watching, startTimeout); err == nil {
			t.Cleanup(p.kill)
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
		p.kill()
	}
	t.Fatalf("redistest: sentinel: %v", err)
	return ""
}

// fieldOf is a value of SENTINEL MASTER's reply, in RESP2 or RESP3.
func fieldOf(reply any, name string) string {
	switch m := reply.(type) {
	case map[any]any:
		return fmt.Sprint(m[name])
	case []any:
		for i := 0; i+1 < len(m); i += 2 {
			if m[i] == name {
				return fmt.Sprint(m[i+1])
			}
		}
	}
	return ""
}

// Addrs are the addresses of the Sentinels.
func (s *Sentinels) Addrs() []string { return slices.Clone(s.addrs) }

// FailoverClient returns a client that asks the Sentinels for the master, and
// is closed when t ends.
func (s *Sentinels) FailoverClient(t testing.TB) *redis.Client {
	t.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: s.addrs, PoolSize: 64})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Kill kills the master and lets the Sentinels find that out.
func (s *Sentinels) Kill(master *Server) {
	s.t.Helper()
	master.Kill()
	for _, rdb := range s.rdbs {
		s.do(rdb, "SENTINEL", "SET", MasterName, "failover-timeout", "3000")
	}
}

// Failover promotes a replica although the master lives. The old master is made
// a replica too, some seconds later; until then it takes writes.
func (s *Sentinels) Failover() {
	s.t.Helper()
	s.do(s.rdbs[0], "SENTINEL", "FAILOVER", MasterName)
}

// AwaitMaster returns when all Sentinels name this server as the master.
func (s *Sentinels) AwaitMaster(master *Server) {
	s.t.Helper()
	Eventually(s.t, "the Sentinels name the new master", func(ctx context.Context) bool {
		for _, rdb := range s.rdbs {
			reply, _ := rdb.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
			if strings.Join(reply, ":") != master.Addr() {
				return false
			}
		}
		return true
	})
}

func (s *Sentinels) do(rdb *redis.Client, words ...any) {
	s.t.Helper()
	if err := rdb.Do(s.t.Context(), words...).Err(); err != nil {
		s.t.Fatalf("redistest: %v: %v", words, err)
	}
}
