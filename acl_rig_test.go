package pawl_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// published are the rules of each user of docs/security.md, by its name.
var published = sync.OnceValue(func() map[string][]string {
	page, err := os.ReadFile("docs/security.md")
	if err != nil {
		panic(err)
	}
	users := map[string][]string{}
	for _, line := range regexp.MustCompile("(?m)^ACL SETUSER (.*)$").FindAllStringSubmatch(string(page), -1) {
		words := strings.Fields(line[1])
		users[words[0]] = words[1:]
	}
	return users
})

// rules are those of a published user, without the commands left out.
func rules(t *testing.T, user string, without ...string) []string {
	t.Helper()
	require.Contains(t, published(), user)
	left := make([]string, 0, len(published()[user]))
	for _, rule := range published()[user] {
		if !slices.Contains(without, strings.TrimPrefix(rule, "+")) {
			left = append(left, rule)
		}
	}
	require.Len(t, left, len(published()[user])-len(without), "%v are rights of %s", without, user)
	return left
}

// commandsOf are the commands of a published user.
func commandsOf(user string) (commands []string) {
	for _, rule := range published()[user] {
		if command, ok := strings.CutPrefix(rule, "+"); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// logIn is a client of the server as the user of docs/security.md, by addr, which
// may be a proxy's.
func logIn(t *testing.T, s *redistest.Server, addr string, readTimeout time.Duration) *redis.Client {
	t.Helper()
	s.SetUser(t, "pawl", rules(t, "pawl")...)
	return clientAs(t, "pawl", addr, readTimeout)
}

// clientAs is a client with the password of a published user, as that user or as
// another whose rules were made from it.
func clientAs(t *testing.T, of, addr string, readTimeout time.Duration, as ...string) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: addr, Username: append(as, of)[0], PoolSize: 64, ReadTimeout: readTimeout}
	for _, rule := range published()[of] {
		if password, ok := strings.CutPrefix(rule, ">"); ok {
			opts.Password = password
		}
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// refusedNothing fails the test at its end if the ACL has refused anything but the
// CLIENT of go-redis, which docs/security.md speaks of. pawl passes over some
// refusals, so that they would not show.
func refusedNothing(t *testing.T, admin *redis.Client) {
	t.Helper()
	t.Cleanup(func() {
		entries, err := admin.ACLLog(context.Background(), 1000).Result()
		require.NoError(t, err)
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Object, "client") {
				t.Errorf("the ACL refused %s %q of %s", entry.Reason, entry.Object, entry.Username)
			}
		}
	})
}
