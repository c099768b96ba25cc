package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// poolFinding looks at the client's own side. Of a cluster client the pool is
// that of each node.
func poolFinding(rdb redis.UniversalClient) Finding {
	const least, needs = 3, "each worker that runs needs 3 (2 if Blocking is set; in a cluster 2, and one more a queue)"
	var size, active int
	switch r := rdb.(type) {
	case oneServer:
		size, active = r.Options().PoolSize, r.Options().MaxActiveConns
	case interface{ Options() *redis.ClusterOptions }:
		size, active = r.Options().PoolSize, r.Options().MaxActiveConns
	default:
		return Finding{Check: "pool", Unknown: true, Text: fmt.Sprintf("the pool of a %T cannot be looked at: %s", rdb, needs)}
	}
	name := "PoolSize"
	if active > 0 && active < size {
		name, size = "MaxActiveConns", active
	}
	f := good("%s is %d: %s", name, size, needs)
	if size < least {
		f = wrong("%s is %d, and %s. Set it to 3 at least, with room for those that enqueue", name, size, needs)
	}
	f.Check = "pool"
	return f
}

// probe tries commands, one an argument with KEY for the key, and returns what
// the server said to each. It cannot write: of a command that writes the server
// looks at the rights first, then refuses it as a write. Redis 6 and miniredis
// do not know the first line.
const probe = `#!lua flags=no-writes
local said = {}
for i = 1, #ARGV do
  local words = {}
  for word in string.gmatch(ARGV[i], '%S+') do
    words[#words + 1] = word == 'KEY' and KEYS[1] or word
  end
  local answer = redis.pcall(unpack(words))
  said[i] = type(answer) == 'table' and answer.err or ''
end
return said
`

// Commands that are probed: those that a worker and a producer send, by a script
// or alone, and those of the other calls. docs/security.md says which needs what.
var (
	workProbes = []string{
		"DEL KEY", "GET KEY", "HDEL KEY f", "HEXISTS KEY f", "HGET KEY f", "HINCRBY KEY f 1", "HLEN KEY", "HMGET KEY f",
		"HRANDFIELD KEY", "HSCAN KEY 0", "HSET KEY f v", "LLEN KEY", "LPUSH KEY v", "PEXPIRE KEY 1", "PEXPIREAT KEY 1", "PTTL KEY", "PUBLISH KEY m", "SET KEY v", "TIME",
		"XADD KEY * f v", "XDEL KEY 1-1", "XLEN KEY", "XRANGE KEY - +", "XREVRANGE KEY + -", "ZADD KEY 1 m", "ZCARD KEY",
		"ZCOUNT KEY 0 1", "ZMSCORE KEY m", "ZRANGE KEY 0 1", "ZRANGEBYSCORE KEY 0 1", "ZREM KEY m", "ZSCAN KEY 0",
		"ZSCORE KEY m",
	}
	lookProbes = []string{
		"EXISTS KEY", "HGETALL KEY", "SCAN 0 COUNT 1", "UNLINK KEY", "XREAD STREAMS KEY 0-0",
	}
	workListProbes = []string{"SADD KEY m"} // of the list of queues
	lookListProbes = []string{"SMEMBERS KEY", "SREM KEY m"}
)

// rights tries what the user may do, on keys of a queue that exists if the
// program has named one: an ACL may be for that queue alone. Without all, only
// what a worker needs.
func (c *Client) rights(ctx context.Context, all bool) Finding {
	f, err := c.tryRights(ctx, all)
	if err != nil {
		f = notKnown("the scripts got no answer (%v): ask again when the server answers", err)
	}
	f.Check = "rights"
	return f
}

// trial is what the server said to those who tried.
type trial struct {
	script, probe, list, pop, hear error    // refusals of whole calls
	lacks                          []string // commands that the user may not run
}

func (c *Client) tryRights(ctx context.Context, all bool) (Finding, error) {
	ctx, cancel := mostOf(ctx)
	defer cancel()
	name := c.anyQueue()
	k := newKeyspace(c.namespace, name)
	never := k.stop("doctor") // a key that nobody makes
	probes, listProbes := workProbes, workListProbes
	look := &call{script: scriptDeaths, keys: []string{k.dead}, args: []any{"+", "-"}}
	if all {
		probes, listProbes = slices.Concat(workProbes, lookProbes), slices.Concat(workListProbes, lookListProbes)
		look = &call{script: scriptStats, keys: k.stats(), args: []any{canaryName}}
	}
	var t trial
	var err error
	_, t.script, err = consult(ctx, func(ctx context.Context) (any, error) {
		attempt(ctx, c.rdb, look)
		return nil, look.err
	})
	if err != nil {
		return Finding{}, err
	}
	try := func(key string, probes []string) (no, err error) {
		said, no, err := consult(ctx, func(ctx context.Context) ([]string, error) {
			args := make([]any, len(probes))
			for i, words := range probes {
				args[i] = words
			}
			return c.rdb.Eval(ctx, probe, []string{key}, args...).StringSlice()
		})
		for i, text := range said {
			if forbids(text) {
				command, _, _ := strings.Cut(probes[i], " ")
				t.lacks = append(t.lacks, command)
			}
		}
		return no, err
	}
	if t.probe, err = try(never, probes); err != nil {
		return Finding{}, err
	}
	if t.list, err = try(queuesKey(c.namespace), listProbes); err != nil {
		return Finding{}, err
	}
	_, t.pop, err = consult(ctx, func(ctx context.Context) (any, error) {
		err := c.rdb.Do(ctx, "blpop", never, "0.01").Err()
		if errors.Is(err, redis.Nil) || isRefusal(err) && !forbids(err.Error()) {
			return nil, nil // other checks report the READONLY of a replica and the like
		}
		return nil, err
	})
	if err != nil {
		return Finding{}, err
	}
	if all { // a worker waits for no job
		_, t.hear, err = consult(ctx, func(ctx context.Context) (any, error) {
			return nil, mayHear(ctx, c.rdb, k.ended())
		})
		if err != nil {
			return Finding{}, err
		}
	}
	return t.judge(c.namespace, k.prefix), nil
}

func (t *trial) judge(namespace, tried string) Finding {
	keys, list := namespace+":*", queuesKey(namespace)
	var refusals []string
	for _, err := range []error{t.script, t.probe, t.pop} {
		if err != nil && forbids(err.Error()) && !slices.Contains(refusals, err.Error()) {
			refusals = append(refusals, err.Error())
		}
	}
	switch {
	case len(t.lacks) > 0:
		return wrong("the user may not run %s: give it the ACL rules %s ~%s", strings.Join(t.lacks, ", "), grants(t.lacks), keys)
	case len(refusals) > 0:
		return wrong("the user may not run what pawl sends (%s): allow it EVALSHA, EVAL, BLPOP and the commands of the scripts, on the keys %s", strings.Join(refusals, "; "), keys)
	case t.list != nil && forbids(t.list.Error()):
		return wrong("the user may not use the key %s (%v), so that Queues does not list what it makes: give it the ACL rule ~%s", list, t.list, list)
	case t.script != nil && classify(t.script) == classRefused:
		return notKnown("the server runs no script now (%v): see what else is wrong, and ask again", t.script)
	case t.script != nil:
		return wrong("a script of pawl fails (%v): use a server that runs EVALSHA as Redis does, and a namespace whose keys nothing else makes", t.script)
	case t.probe != nil:
		return notKnown("a script that reads runs; only Redis 7 or newer tells whether those that write may, without a write: enqueue a job to see")
	case t.hear != nil && forbids(t.hear.Error()):
		return wrong("the user may not subscribe to what tells that jobs have ended (%v), so that Wait asks again and again: give it the ACL rules +subscribe +unsubscribe &%s", t.hear, keys)
	}
	return good("the user may run all that pawl sends, on the keys %s* and %s", tried, list)
}

func grants(commands []string) string {
	return "+" + strings.ToLower(strings.Join(commands, " +"))
}

// anyQueue is the first queue by name that the program has named, or none's.
func (c *Client) anyQueue() string {
	var names []string
	c.queues.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	if len(names) == 0 {
		return "doctor"
	}
	return slices.Min(names)
}
