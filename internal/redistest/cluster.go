package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const allSlots = 16384

// Cluster is a Redis Cluster of one test: some masters that share the slots
// evenly, and replicas of each.
type Cluster struct {
	Nodes []*Server // the masters first, as they were at the start

	t    testing.TB
	rdbs []*redis.Client // of the nodes, past the cluster's redirections
	ids  []string
}

// StartCluster returns when every node thinks the cluster well and every replica
// has caught up. A node that does not answer for a second is taken for dead, and
// its replica takes over about a second later.
func StartCluster(t testing.TB, masters, replicasEach int) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for i := range masters * (1 + replicasEach) {
		s := Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
			"--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0")
		rdb := s.admin()
		id, err := rdb.Do(t.Context(), "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatalf("redistest: cluster: %v", err)
		}
		c.Nodes, c.rdbs, c.ids = append(c.Nodes, s), append(c.rdbs, rdb), append(c.ids, id)
		c.do(i, "CLUSTER", "SET-CONFIG-EPOCH", i+1) // or they would quarrel about it
		if i < masters {
			c.do(i, "CLUSTER", "ADDSLOTSRANGE", i*allSlots/masters, (i+1)*allSlots/masters-1)
		}
		if i > 0 {
			c.do(0, "CLUSTER", "MEET", "127.0.0.1", s.port)
		}
	}
	c.eventually("the nodes know each other", func(ctx context.Context, i int) bool {
		text, _ := c.rdbs[i].ClusterNodes(ctx).Result()
		return strings.Count(text, " connected") == len(c.Nodes) && !strings.Contains(text, "handshake")
	})
	for i := masters; i < len(c.Nodes); i++ {
		c.do(i, "CLUSTER", "REPLICATE", c.ids[i%masters])
	}
	c.AwaitOK()
	return c
}

// Client returns a client of the cluster that is closed when t ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for _, s := range c.Nodes {
		addrs = append(addrs, s.Addr())
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, PoolSize: 64})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// AwaitOK returns when all nodes that run think the cluster well, agree on who
// is what and has which slots, and have caught up if they are replicas.
func (c *Cluster) AwaitOK() {
	c.t.Helper()
	Eventually(c.t, "the cluster is well", func(ctx context.Context) bool {
		seen := map[string]bool{}
		for i, rdb := range c.rdbs {
			if !c.Nodes[i].running() {
				continue
			}
			info, _ := rdb.ClusterInfo(ctx).Result()
			link := infoField(ctx, rdb, "replication", "master_link_status") // of a replica
			if lineField(info, "cluster_state") != "ok" || link != "" && link != "up" {
				return false
			}
			seen[c.view(ctx, i)] = true
		}
		return len(seen) == 1
	})
}

// view is who is what and has which slots in the eyes of a node, as one text.
// Nodes that think a replica a master refuse it their vote.
func (c *Cluster) view(ctx context.Context, i int) string {
	text, _ := c.rdbs[i].ClusterNodes(ctx).Result()
	var lines []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id, address, flags, master, pings, pongs, epoch, link, slots
		if len(f) > 7 {
			flags := strings.TrimPrefix(f[2], "myself,")
			lines = append(lines, strings.Join(append([]string{f[0], flags, f[3]}, f[8:]...), " "))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// MasterOf is the node that has the slot of a key.
func (c *Cluster) MasterOf(key string) *Server { return c.Nodes[c.masterOf(c.Slot(key))] }

// Slot is the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	for _, rdb := range c.rdbs {
		if slot, err := rdb.ClusterKeySlot(c.t.Context(), key).Result(); err == nil {
			return int(slot)
		}
	}
	c.t.Fatalf("redistest: no node tells the slot of %q", key)
	return 0
}

// masterOf is the index of the node that says itself that a slot is its own:
// what others say may be old.
func (c *Cluster) masterOf(slot int) (found int) {
	c.t.Helper()
	Eventually(c.t, fmt.Sprintf("slot %d has a master", slot), func(ctx context.Context) bool {
		for i, rdb := range c.rdbs {
			text, _ := rdb.ClusterNodes(ctx).Result()
			for line := range strings.Lines(text) {
				if strings.Contains(line, "myself,master") && has(line, slot) {
					found = i
					return true
				}
			}
		}
		return false
	})
	return found
}

// has reports whether a line of CLUSTER NODES names the slot, as "5" or "0-9";
// "[5->-…" is one that moves.
func has(line string, slot int) bool {
	for _, word := range strings.Fields(line)[8:] {
		low, high, isRange := strings.Cut(word, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if err1 == nil && err2 == nil && first <= slot && slot <= last {
			return true
		}
	}
	return false
}

// ReplicaOf is a running node that replicates the master.
func (c *Cluster) ReplicaOf(master *Server) *Server {
	c.t.Helper()
	var found *Server
	Eventually(c.t, "the master has a replica", func(ctx context.Context) bool {
		for i, rdb := range c.rdbs {
			if infoField(ctx, rdb, "replication", "master_port") == strconv.Itoa(master.port) {
				found = c.Nodes[i]
			}
		}
		return found != nil
	})
	return found
}

// Failover has the replica of a master take its place while the master lives:
// the two agree, and no write is lost.
func (c *Cluster) Failover(master *Server) (promoted *Server) {
	c.t.Helper()
	promoted = c.ReplicaOf(master)
	c.do(c.index(promoted), "CLUSTER", "FAILOVER")
	Eventually(c.t, "the replica has taken over", func(ctx context.Context) bool {
		return promoted.Role(ctx) == "master" && master.Role(ctx) == "slave"
	})
	return promoted
}

func (c *Cluster) index(s *Server) int {
	for i, n := range c.Nodes {
		if n == s {
			return i
		}
	}
	return -1
}

// eventually waits until something holds of every node.
func (c *Cluster) eventually(what string, holds func(ctx context.Context, i int) bool) {
	c.t.Helper()
	Eventually(c.t, what, func(ctx context.Context) bool {
		for i := range c.Nodes {
			if !holds(ctx, i) {
				return false
			}
		}
		return true
	})
}

func (c *Cluster) do(i int, words ...any) {
	c.t.Helper()
	if err := c.rdbs[i].Do(c.t.Context(), words...).Err(); err != nil {
		c.t.Fatalf("redistest: %v: %v", words, err)
	}
}
