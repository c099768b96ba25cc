package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Dump returns every key under the prefix with a canonical text of its whole
// value, and " ttl" after its type if it has one: two dumps are equal exactly
// if the keys are, but for how long the TTLs still are. An error panics: a dump
// that is not whole would compare as equal by chance. It works on a cluster and
// on miniredis.
func Dump(ctx context.Context, rdb redis.UniversalClient, prefix string) map[string]string {
	dump := map[string]string{}
	for _, key := range keysUnder(ctx, rdb, prefix) {
		text, err := dumpKey(ctx, rdb, key)
		if err != nil {
			panic(fmt.Sprintf("redistest: dump %q: %v", key, err))
		}
		if text != "" {
			dump[key] = text
		}
	}
	return dump
}

var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func keysUnder(ctx context.Context, rdb redis.UniversalClient, prefix string) []string {
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, node redis.Cmdable) error {
		iter := node.Scan(ctx, 0, glob.Replace(prefix)+"*", 1000).Iterator()
		for iter.Next(ctx) {
			mu.Lock()
			keys = append(keys, iter.Val())
			mu.Unlock()
		}
		return iter.Err()
	}
	var err error
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return scan(ctx, node)
		})
	} else {
		err = scan(ctx, rdb)
	}
	if err != nil {
		panic(fmt.Sprintf("redistest: scan %q: %v", prefix, err))
	}
	return keys
}

// dumpKey returns "" for a key that has gone since it was found.
func dumpKey(ctx context.Context, rdb redis.UniversalClient, key string) (string, error) {
	kind, err := rdb.Type(ctx, key).Result()
	if err != nil || kind == "none" {
		return "", err
	}
	lines, err := dumpValue(ctx, rdb, kind, key)
	if err != nil {
		return "", err
	}
	ttl, err := rdb.PTTL(ctx, key).Result()
	if err != nil {
		return "", err
	}
	if ttl > 0 {
		kind += " ttl"
	}
	return strings.Join(append([]string{kind}, lines...), "\n"), nil
}

// dumpValue lists a value in an order of its own, one element a line.
func dumpValue(ctx context.Context, rdb redis.UniversalClient, kind, key string) (lines []string, err error) {
	switch kind {
	case "string":
		var v string
		v, err = rdb.Get(ctx, key).Result()
		lines = []string{strconv.Quote(v)}
	case "list":
		var vs []string
		vs, err = rdb.LRange(ctx, key, 0, -1).Result()
		lines = quoted(vs)
	case "set":
		var vs []string
		vs, err = rdb.SMembers(ctx, key).Result()
		slices.Sort(vs)
		lines = quoted(vs)
	case "hash":
		var m map[string]string
		m, err = rdb.HGetAll(ctx, key).Result()
		for f, v := range m {
			lines = append(lines, fmt.Sprintf("%q = %q", f, v))
		}
		slices.Sort(lines)
	case "zset":
		var zs []redis.Z
		zs, err = rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, z := range zs {
			lines = append(lines, fmt.Sprintf("%s %q", strconv.FormatFloat(z.Score, 'f', -1, 64), z.Member))
		}
	case "stream":
		var raw any // a map would lose the order of an entry's fields
		raw, err = rdb.Do(ctx, "XRANGE", key, "-", "+").Result()
		entries, _ := raw.([]any)
		for _, e := range entries {
			lines = append(lines, fmt.Sprintf("%q", e))
		}
	default:
		err = fmt.Errorf("a type that dump does not know: %s", kind)
	}
	return lines, err
}

func quoted(vs []string) []string {
	lines := make([]string, len(vs))
	for i, v := range vs {
		lines[i] = strconv.Quote(v)
	}
	return lines
}
