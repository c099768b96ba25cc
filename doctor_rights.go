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
	case *redis.Client:
		size, active = r.Options().PoolSize, r.Options().MaxActiveConns
	case *redis.ClusterClient:
		size, active = r.Options().PoolSize, r.Options().MaxActiveConns
	case *redis.Ring:
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

// probed are the commands of the scripts, and those that a worker sends itself.
var probed = []string{
	"DEL KEY", "EXISTS KEY", "GET KEY", "HDEL KEY f", "HEXISTS KEY f", "HGET KEY f", "HGETALL KEY", "HINCRBY KEY f 1",
	"HLEN KEY", "HMGET KEY f", "HRANDFIELD KEY", "HSCAN KEY 0", "HSET KEY f v", "LLEN KEY", "LPUSH KEY v", "PEXPIRE KEY 1",
	"PEXPIREAT KEY 1", "PTTL KEY", "SADD KEY m", "SET KEY v", "SMEMBERS KEY", "SREM KEY m", "TIME", "UNLINK KEY", "XADD KEY * f v", "XDEL KEY 1-1", "XLEN KEY", "XRANGE KEY - +",
	"XREAD STREAMS KEY 0-0", "XREVRANGE KEY + -", "ZADD KEY 1 m", "ZCARD KEY", "ZCOUNT KEY 0 1", "ZMSCORE KEY m", "ZRANGE KEY 0 1",
	"ZRANGEBYSCORE KEY 0 1", "ZREM KEY m", "ZSCAN KEY 0", "ZSCORE KEY m",
}

// rights tries what the user may do, on keys of a queue that exists if the
// program has named one: an ACL may be for that queue alone.
func (c *Client) rights(ctx context.Context) Finding {
	f, err := c.tryRights(ctx)
	if err != nil {
		f = notKnown("the scripts got no answer (%v): ask again when the server answers", err)
	}
	f.Check = "rights"
	return f
}

func (c *Client) tryRights(ctx context.Context) (Finding, error) {
	ctx, cancel := mostOf(ctx)
	defer cancel()
	name := c.anyQueue()
	q := &queueState{client: c, name: name, keys: newKeyspace(c.namespace, name)}
	k := &q.keys
	_, no, err := consult(ctx, func(ctx context.Context) (any, error) {
		look := &call{script: scriptStats, keys: []string{k.jobs, k.held, k.due, k.prio, k.leases, k.dead, k.meta}}
		attempt(ctx, c.rdb, look)
		return nil, look.err
	})
	if err != nil {
		return Finding{}, err
	}
	never := k.stop("doctor") // a key that nobody makes
	said, probeNo, err := consult(ctx, func(ctx context.Context) ([]string, error) {
		args := make([]any, len(probed))
		for i, words := range probed {
			args[i] = words
		}
		return c.rdb.Eval(ctx, probe, []string{never}, args...).StringSlice()
	})
	if err != nil {
		return Finding{}, err
	}
	_, popNo, err := consult(ctx, func(ctx context.Context) (any, error) { return nil, tryPop(ctx, q, never) })
	if err != nil {
		return Finding{}, err
	}
	return judgeRights(c.namespace+":*", k.prefix, no, probeNo, popNo, said), nil
}

// tryPop sends what a worker sends beside scripts. Not by TxPipeline: if MULTI
// is refused, go-redis leaves the other answers unread on the connection.
func tryPop(ctx context.Context, q *queueState, never string) error {
	rdb, err := nodeOf(ctx, q)
	if err != nil {
		return err
	}
	pop := []any{"blpop", never, "0.01"}
	single, ok := rdb.(*redis.Client)
	if !ok { // a pipeline could go to several servers
		return ignoreUnlessForbidden(q.client.rdb.Do(ctx, pop...).Err())
	}
	pipe := single.Pipeline()
	_ = pipe.Do(ctx, "multi")
	_ = pipe.Do(ctx, pop...) // which does not wait, in a transaction
	_ = pipe.Do(ctx, "exec")
	cmds, err := pipe.Exec(ctx)
	for _, cmd := range cmds {
		if no := cmd.Err(); isRefusal(no) && forbids(no.Error()) {
			return no
		}
	}
	return ignoreUnlessForbidden(err)
}

// ignoreUnlessForbidden passes over what the other checks report, such as the
// READONLY of a replica.
func ignoreUnlessForbidden(err error) error {
	if errors.Is(err, redis.Nil) || isRefusal(err) && !forbids(err.Error()) {
		return nil
	}
	return err
}

func judgeRights(keys, tried string, no, probeNo, popNo error, said []string) Finding {
	var lacks []string
	for i, text := range said {
		if forbids(text) {
			command, _, _ := strings.Cut(probed[i], " ")
			lacks = append(lacks, command)
		}
	}
	var refusals []string
	for _, err := range []error{no, probeNo, popNo} {
		if err != nil && forbids(err.Error()) && !slices.Contains(refusals, err.Error()) {
			refusals = append(refusals, err.Error())
		}
	}
	switch {
	case len(lacks) > 0:
		return wrong("the user may not run %s: give it the ACL rules %s ~%s", strings.Join(lacks, ", "), grants(lacks), keys)
	case len(refusals) > 0:
		return wrong("the user may not run what pawl sends (%s): allow it EVALSHA, EVAL, BLPOP, MULTI, EXEC and the commands of the scripts, on the keys %s", strings.Join(refusals, "; "), keys)
	case no != nil && classify(no) == classRefused:
		return notKnown("the server runs no script now (%v): see what else is wrong, and ask again", no)
	case no != nil:
		return wrong("a script of pawl fails (%v): use a server that runs EVALSHA as Redis does, and a namespace whose keys nothing else makes", no)
	case probeNo != nil:
		return notKnown("a script that reads runs; only Redis 7 or newer tells whether those that write may, without a write: enqueue a job to see")
	}
	return good("the user may run all that pawl sends, on the keys %s*", tried)
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
