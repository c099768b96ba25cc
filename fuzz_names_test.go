package pawl

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// isName is the documented rule, "1 to 128 letters, digits, '.', '_', '-' or
// ':'", written without a pattern.
func isName(s string) bool {
	for _, c := range []byte(s) {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:", rune(c)) {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 128
}

// hashTag is what a cluster hashes of a key, as the Redis Cluster specification
// says: between the first { and the first } after it, unless that is nothing.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// lazyClient is a client that is not meant to be used: it has dialled nobody.
func lazyClient(t testing.TB) redis.UniversalClient {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func FuzzNames(f *testing.F) {
	for _, name := range []string{"", "emails", "a.b_c-d:e", ".", "-", ":", "pawl", "a\n", "\na", "a\x00", "{a}", "a}", "a b",
		"*", "?", "[a]", "é", "\xff", "a/b", `a\b`, strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("é", 64)} {
		f.Add(name, "emails", "k")
		f.Add("pawl", name, "{other}")
		f.Add("pawl", "emails", name)
	}
	rdb := lazyClient(f)
	f.Fuzz(func(t *testing.T, namespace, queue, unique string) {
		c, err := New(rdb, Config{Namespace: namespace})
		if namespace != "" && !isName(namespace) {
			require.ErrorIs(t, err, ErrInvalid)
			require.Nil(t, c)
			return
		}
		require.NoError(t, err)
		q := c.Queue(queue)
		require.Equal(t, queue, q.Name())
		_, err = q.EnqueueRaw(cancelled(), "kind", nil)
		if !isName(queue) {
			require.ErrorIs(t, err, ErrName)
			require.Less(t, len(err.Error()), 1000, "whatever the name is")
			return
		}
		require.NotErrorIs(t, err, ErrName)

		k := &q.keys
		keys := append(k.fixed(), k.lane("L"), k.stop("S"))
		for _, key := range keys {
			require.Equal(t, 1, strings.Count(key, "{"), key)
			require.Equal(t, 1, strings.Count(key, "}"), key)
		}
		// The text of a unique key is anything, and cannot move it to another slot.
		keys = append(keys, k.unique(unique), queuesKey(c.namespace))
		slices.Sort(keys)
		require.Len(t, slices.Compact(keys), len(k.fixed())+2+2, "no two are the same")
		for _, key := range keys {
			require.True(t, strings.HasPrefix(key, c.namespace+":"), key)
			if key != queuesKey(c.namespace) {
				require.Equal(t, queue, hashTag(key), key)
			}
		}
	})
}

// FuzzKeysAreNobodyElses: no key of one queue is one of another, whatever
// namespaces, names and unique keys they have.
func FuzzKeysAreNobodyElses(f *testing.F) {
	f.Add("pawl", "a", "k", "pawl", "b", "k")
	f.Add("pawl", "a:b", "c", "pawl", "a", "b:c")
	f.Add("pawl:a", "b", "c", "pawl", "a:b", "c")
	f.Add("a", "b", "}:jobs", "a", "b", "jobs")
	f.Add("a", "b", "", "a", "b", ":")
	f.Add("a:", ":b", "", "a", "::b", "")
	f.Fuzz(func(t *testing.T, ns1, queue1, unique1, ns2, queue2, unique2 string) {
		for _, name := range []string{ns1, queue1, ns2, queue2} {
			if !isName(name) {
				t.Skip("it is refused")
			}
		}
		a, b := newKeyspace(ns1, queue1), newKeyspace(ns2, queue2)
		same := ns1 == ns2 && queue1 == queue2
		require.Equal(t, same && unique1 == unique2, a.unique(unique1) == b.unique(unique2))
		require.Equal(t, same, slices.Equal(a.fixed(), b.fixed()))
		require.NotContains(t, b.fixed(), a.unique(unique1))
		if !same {
			for _, key := range a.fixed() {
				require.NotContains(t, b.fixed(), key)
				require.NotEqual(t, b.unique(unique2), key)
			}
		}
	})
}
