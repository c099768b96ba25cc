package pawl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// doctorChecks is every check, in the order that is promised.
var doctorChecks = []string{"version", "role", "cluster", "maxmemory-policy", "maxmemory", "appendonly", "appendfsync",
	"disk", "min-replicas", "pool", "rights"}

// findings asks Doctor by rdb, and returns what it says by check.
func findings(t *testing.T, rdb redis.UniversalClient) map[string]pawl.Finding {
	t.Helper()
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	return findingsOf(t, c)
}

func findingsOf(t *testing.T, c *pawl.Client) map[string]pawl.Finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	list, err := c.Doctor(ctx)
	require.NoError(t, err)
	var names []string
	byCheck := map[string]pawl.Finding{}
	for _, f := range list {
		names = append(names, f.Check)
		byCheck[f.Check] = f
		require.NotEmpty(t, f.Text, f.Check)
		require.False(t, f.OK && f.Unknown, "%s is unknown, so it is not OK", f.Check)
	}
	require.Equal(t, doctorChecks, names)
	return byCheck
}

func requireBad(t *testing.T, f pawl.Finding, says ...string) {
	t.Helper()
	require.False(t, f.OK || f.Unknown, f.String())
	for _, s := range says {
		require.Contains(t, f.Text, s)
	}
}

func requireOK(t *testing.T, f pawl.Finding, says ...string) {
	t.Helper()
	require.True(t, f.OK && !f.Unknown, f.String())
	for _, s := range says {
		require.Contains(t, f.Text, s)
	}
}

func requireUnknown(t *testing.T, f pawl.Finding, says ...string) {
	t.Helper()
	require.True(t, f.Unknown && !f.OK, f.String())
	for _, s := range says {
		require.Contains(t, f.Text, s)
	}
}

func set(t *testing.T, rdb *redis.Client, name, value string) {
	t.Helper()
	require.NoError(t, rdb.ConfigSet(t.Context(), name, value).Err())
}

// sound is a server about which Doctor has nothing to say.
func sound(t *testing.T, args ...string) *redistest.Server {
	t.Helper()
	return redistest.Start(t, append([]string{"--appendonly", "yes", "--maxmemory", "500mb"}, args...)...)
}

func TestDoctorFindsNothingBadInASoundServerAndWritesNothing(t *testing.T) {
	t.Parallel()
	rdb := sound(t).Client(t)
	before := rdb.Info(t.Context(), "persistence").Val()
	for _, f := range findings(t, rdb) {
		requireOK(t, f)
	}
	changes := regexp.MustCompile(`rdb_changes_since_last_save:\d+`)
	require.Equal(t, changes.FindString(before), changes.FindString(rdb.Info(t.Context(), "persistence").Val()))
	require.Zero(t, rdb.DBSize(t.Context()).Val())
	require.Equal(t, findings(t, rdb), findings(t, rdb), "two reports can be compared")
}

func TestDoctorFindsSettingsThatHurt(t *testing.T) {
	t.Parallel()
	rdb := sound(t).Client(t)
	for _, c := range []struct{ name, value, check, says string }{
		{"maxmemory-policy", "allkeys-lru", "maxmemory-policy", "whole queues"},
		{"maxmemory-policy", "allkeys-random", "maxmemory-policy", "noeviction"},
		{"maxmemory-policy", "volatile-ttl", "maxmemory-policy", "unique and idempotency keys"},
		{"maxmemory", "0", "maxmemory", "no limit"},
		{"appendonly", "no", "appendonly", "appendonly yes"},
		{"appendfsync", "no", "appendfsync", "everysec"},
		{"min-replicas-to-write", "1", "min-replicas", "NOREPLICAS"},
	} {
		was := rdb.ConfigGet(t.Context(), c.name).Val()[c.name]
		set(t, rdb, c.name, c.value)
		found := findings(t, rdb)
		requireBad(t, found[c.check], c.says)
		for name, f := range found {
			if name != c.check {
				requireOK(t, f)
			}
		}
		set(t, rdb, c.name, was)
	}
	set(t, rdb, "appendfsync", "always")
	requireOK(t, findings(t, rdb)["appendfsync"], "always")
}

func TestDoctorFindsThatMemoryIsNearlyFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	require.NoError(t, rdb.SetRange(t.Context(), "ballast", 50<<20, "x").Err())
	set(t, rdb, "maxmemory", "56mb")
	requireBad(t, findings(t, rdb)["maxmemory"], "56 MiB", "ErrFull")
	set(t, rdb, "maxmemory", "100mb")
	requireOK(t, findings(t, rdb)["maxmemory"])
}

func TestDoctorFindsThatTheDiskRefuses(t *testing.T) {
	t.Parallel()
	s := sound(t)
	rdb := s.Client(t)
	// A snapshot cannot be renamed to the name of a folder.
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir(), "dump.rdb", "x"), nil, 0o600))
	require.NoError(t, rdb.BgSave(t.Context()).Err())
	redistest.Eventually(t, "the snapshot fails", func(ctx context.Context) bool {
		return regexp.MustCompile("rdb_last_bgsave_status:err").MatchString(rdb.Info(ctx, "persistence").Val())
	})
	requireBad(t, findings(t, rdb)["disk"], "snapshot", "MISCONF")
}

func TestDoctorFindsAReplica(t *testing.T) {
	t.Parallel()
	master := sound(t)
	rdb := sound(t).Client(t)
	host, port := "127.0.0.1", master.Addr()[len("127.0.0.1:"):]
	require.NoError(t, rdb.ReplicaOf(t.Context(), host, port).Err())
	redistest.Eventually(t, "the replica is in step", func(ctx context.Context) bool {
		return regexp.MustCompile("master_link_status:up").MatchString(rdb.Info(ctx, "replication").Val())
	})
	found := findings(t, rdb)
	requireBad(t, found["role"], "READONLY", master.Addr())
	requireOK(t, found["rights"])

	m := master.Client(t)
	set(t, m, "min-replicas-to-write", "1")
	redistest.Eventually(t, "the master counts its replica", func(ctx context.Context) bool {
		return regexp.MustCompile("min_slaves_good_slaves:1").MatchString(m.Info(ctx, "replication").Val())
	})
	requireOK(t, findings(t, m)["min-replicas"])

	master.Kill()
	set(t, rdb, "replica-serve-stale-data", "no")
	redistest.Eventually(t, "the replica notices", func(ctx context.Context) bool {
		return regexp.MustCompile("master_link_status:down").MatchString(rdb.Info(ctx, "replication").Val())
	})
	found = findings(t, rdb)
	requireBad(t, found["role"])
	requireUnknown(t, found["rights"], "MASTERDOWN")
}

// as is a client of a user with these rules.
func as(t *testing.T, s *redistest.Server, name string, rules ...string) *redis.Client {
	t.Helper()
	user(t, s, name, rules...)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: name, Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func user(t *testing.T, s *redistest.Server, name string, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", name, "reset", "on", ">secret"}
	for _, r := range rules {
		args = append(args, r)
	}
	require.NoError(t, s.Client(t).Do(t.Context(), args...).Err())
}

func TestDoctorDoesNotCallOKWhatItMayNotSee(t *testing.T) {
	t.Parallel()
	s := sound(t)
	found := findings(t, as(t, s, "app", "~pawl:*", "&pawl:*", "+@all", "-@dangerous"))
	for _, check := range doctorChecks {
		switch check {
		case "pool", "rights":
			requireOK(t, found[check])
		case "appendfsync":
			requireUnknown(t, found[check], "NOPERM", "config")
		default:
			requireUnknown(t, found[check], "NOPERM", "info")
		}
	}
	found = findings(t, as(t, s, "noconfig", "~pawl:*", "&pawl:*", "+@all", "-config"))
	for _, check := range doctorChecks {
		if check == "appendfsync" {
			requireUnknown(t, found[check], "NOPERM", "config")
		} else {
			requireOK(t, found[check])
		}
	}
	found = findings(t, as(t, s, "noinfo", "~pawl:*", "&pawl:*", "+@all", "-info"))
	for _, check := range []string{"maxmemory-policy", "appendonly", "appendfsync"} {
		requireOK(t, found[check])
	}
	for _, check := range []string{"version", "role", "cluster", "maxmemory", "disk", "min-replicas"} {
		requireUnknown(t, found[check], "NOPERM", "info")
	}
}

func TestDoctorNamesEachRightThatIsMissing(t *testing.T) {
	t.Parallel()
	s := sound(t)
	var commands []string
	files, err := filepath.Glob("lua/*.lua")
	require.NoError(t, err)
	libs, err := filepath.Glob("lua/lib/*.lua")
	require.NoError(t, err)
	for _, file := range append(files, libs...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`redis\.p?call\('(\w+)'`).FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, m[1])
		}
	}
	slices.Sort(commands)
	commands = slices.Compact(commands)
	require.Greater(t, len(commands), 20)
	for _, command := range commands {
		rdb := as(t, s, "app", "~pawl:*", "+@all", "-"+command)
		requireBad(t, findings(t, rdb)["rights"], "may not run "+command+":", "+"+strings.ToLower(command)+" ~pawl:*")
	}
	for _, command := range []string{"eval", "evalsha", "blpop"} {
		requireBad(t, findings(t, as(t, s, "app", "~pawl:*", "+@all", "-"+command))["rights"], "'"+command+"'")
	}
	requireBad(t, findings(t, as(t, s, "app", "~other:*", "+@all"))["rights"], "on the keys pawl:*")
	requireBad(t, findings(t, as(t, s, "app", "%R~pawl:*", "+@all"))["rights"])

	requireBad(t, findings(t, as(t, s, "app", "~pawl:{doctor}:*", "+@all"))["rights"], "the key pawl:queues", "~pawl:queues")

	requireBad(t, findings(t, as(t, s, "app", "~pawl:*", "+@all", "resetchannels"))["rights"], "&pawl:*")

	rdb := as(t, s, "app", "~pawl:{emails}:*", "~pawl:queues", "&pawl:{emails}:*", "+@all")
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	c.Queue("emails")
	requireOK(t, findingsOf(t, c)["rights"], "pawl:{emails}:*")
	require.Zero(t, s.Client(t).DBSize(t.Context()).Val())
}

func TestDoctorFindsASmallPool(t *testing.T) {
	t.Parallel()
	s := sound(t)
	for size, ok := range map[int]bool{1: false, 2: false, 3: true} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: size})
		t.Cleanup(func() { _ = rdb.Close() })
		f := findings(t, rdb)["pool"]
		require.Equal(t, ok, f.OK)
		require.Contains(t, f.Text, fmt.Sprintf("PoolSize is %d", size))
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxActiveConns: 2})
	t.Cleanup(func() { _ = rdb.Close() })
	requireBad(t, findings(t, rdb)["pool"], "MaxActiveConns is 2")
}

func TestDoctorOfAServerThatTellsLittle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		found := findingsOf(t, e.Client)
		for _, check := range doctorChecks {
			if check == "pool" {
				requireOK(t, found[check])
			} else {
				requireUnknown(t, found[check])
			}
		}
	})
}

func TestAFindingIsOneLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ok       a: b", pawl.Finding{Check: "a", OK: true, Text: "b"}.String())
	require.Equal(t, "unknown  a: b", pawl.Finding{Check: "a", Unknown: true, Text: "b"}.String())
	require.Equal(t, "bad      a: b", pawl.Finding{Check: "a", Text: "b"}.String())
}
