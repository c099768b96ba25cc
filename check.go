package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Violation is a job in no state or two, or a key without an owner. Key is a
// whole key of Redis. ID is the job's id as it stands in that key, a stream id
// (docs/storage.md), which is not the text of an ID; it is "" where the key
// itself is at fault. Text is for people, and may change.
type Violation struct{ Key, ID, Text string }

func (v Violation) String() string {
	return v.Key + ": " + strings.TrimSpace(v.ID+" "+v.Text)
}

// checkPage is how many ids one script call looks at.
const checkPage = 100

// Check walks the queue and reports what is inconsistent: nothing, unless keys
// were edited, evicted or lost. Each id is judged in one moment, so it may be
// used while jobs run. It reads every key of the queue, in pages: for tests and
// for operators, not for a health check. The workers mend most of what it finds.
// It changes nothing, and lasts until ctx ends, if that has no deadline as long
// as it takes. With an error, what was found before it is returned too.
// ErrNotFound: it found nothing, and the queue was never used.
func (q *Queue) Check(ctx context.Context) ([]Violation, error) {
	if q.err != nil {
		return nil, q.wrap("check", q.err)
	}
	c := &checker{q: q.queueState, ctx: ctx}
	err := c.walk()
	if err == nil && len(c.found) == 0 {
		err = c.q.exist(ctx)
	}
	return c.found, q.wrap("check", err)
}

type checker struct {
	q     *queueState
	ctx   context.Context
	found []Violation
}

func (c *checker) walk() error {
	node, err := nodeOf(c.ctx, c.q)
	if err != nil {
		return err
	}
	uniques, marks, err := c.keys(node)
	if err != nil {
		return err
	}
	k := &c.q.keys
	return errors.Join(
		c.uniques(uniques), c.marks(marks), c.schedules(), c.readable(node),
		c.stream(node, k.jobs), c.stream(node, k.dead),
		c.scan(k.held, func(cursor uint64) ([]string, uint64, error) {
			return node.HScan(c.ctx, k.held, cursor, "", checkPage).Result()
		}),
		c.scan(k.runs, func(cursor uint64) ([]string, uint64, error) {
			return node.HScan(c.ctx, k.runs, cursor, "", checkPage).Result()
		}),
		c.scan(k.index, func(cursor uint64) ([]string, uint64, error) {
			return node.HScan(c.ctx, k.index, cursor, "", checkPage).Result()
		}),
		c.scan(k.done, func(cursor uint64) ([]string, uint64, error) {
			return node.HScan(c.ctx, k.done, cursor, "", checkPage).Result()
		}),
		c.scan(k.doneAt, func(cursor uint64) ([]string, uint64, error) {
			return node.ZScan(c.ctx, k.doneAt, cursor, "", checkPage).Result()
		}),
		c.scan(k.due, func(cursor uint64) ([]string, uint64, error) {
			texts, next, err := node.ZScan(c.ctx, k.due, cursor, "", checkPage).Result()
			return texts, next, errors.Join(err, c.parked(texts))
		}),
		c.scan(k.prio, func(cursor uint64) ([]string, uint64, error) {
			return node.ZScan(c.ctx, k.prio, cursor, "", checkPage).Result()
		}),
		c.scan(k.leases, func(cursor uint64) ([]string, uint64, error) {
			return node.ZScan(c.ctx, k.leases, cursor, "", checkPage).Result()
		}),
	)
}

// readable is the errors of keys in which nothing is to be found wrong but their types.
func (c *checker) readable(node redis.Cmdable) error {
	k := &c.q.keys
	var errs []error
	for key, read := range map[string]func(context.Context, string) *redis.IntCmd{
		k.meta: node.HLen, k.minutes: node.HLen, k.wake: node.LLen, k.workers: node.ZCard, k.info: node.HLen,
	} {
		if err := read(c.ctx, key).Err(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// nodeOf is the server that holds the queue's slot, by a map of the slots that is
// new: what is asked of a node is not sent on to another, and SCAN of one that
// has lost the slot finds nothing and says nothing.
func nodeOf(ctx context.Context, q *queueState) (redis.Cmdable, error) {
	if servers, ok := q.client.rdb.(cluster); ok {
		_ = servers.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil }) // reads the map
		return servers.MasterForKey(ctx, q.keys.meta)
	}
	return q.client.rdb, nil
}

// keys reports keys that no part of the layout owns, and returns the unique and the
// idempotency keys. Braces are the only glob characters of a prefix, and not special.
func (c *checker) keys(node redis.Cmdable) (uniques, marks []string, err error) {
	k := &c.q.keys
	known, seen := map[string]bool{}, map[string]bool{}
	for _, key := range k.fixed() {
		known[key] = true
	}
	for cursor := uint64(0); ; {
		page, next, err := node.Scan(c.ctx, cursor, k.prefix+"*", 1000).Result()
		if err != nil {
			return nil, nil, err
		}
		for _, key := range page {
			rest, ours := strings.CutPrefix(key, k.prefix)
			switch {
			case !ours || known[key] || seen[key]:
			case strings.HasPrefix(rest, "unique:"):
				uniques = append(uniques, key)
			case strings.HasPrefix(rest, "idem:"):
				marks = append(marks, key)
			case strings.HasPrefix(rest, "lane:"), strings.HasPrefix(rest, "stop:"):
				if ttl, err := node.PTTL(c.ctx, key).Result(); err == nil && ttl == -1 {
					c.report(key, "", "has no expiry")
				}
			default:
				c.report(key, "", "belongs to nothing")
			}
			seen[key] = true
		}
		if cursor = next; cursor == 0 {
			return uniques, marks, nil
		}
	}
}

func (c *checker) report(key, id, text string) {
	c.found = append(c.found, Violation{key, id, text})
}

// judge asks the script about ids of one key.
func (c *checker) judge(key string, ids, uniques []string) error {
	k := &c.q.keys
	keys := append([]string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.dead, k.index, k.meta, k.done, k.doneAt}, uniques...)
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	texts, err := c.q.read(c.ctx, scriptCheck, keys, args...)
	if err != nil {
		return err
	}
	if len(texts) != len(ids)+len(uniques) {
		return fmt.Errorf("script check answered %d words for %d", len(texts), len(ids)+len(uniques))
	}
	for i, t := range texts {
		text, _ := t.(string)
		switch {
		case text == "":
		case i < len(ids):
			c.report(key, ids[i], text)
		default:
			c.report(uniques[i-len(ids)], "", text)
		}
	}
	return nil
}

func (c *checker) uniques(keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), checkPage)
		if err := c.judge("", nil, keys[:n]); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func (c *checker) marks(keys []string) error {
	for page := range slices.Chunk(keys, checkPage) {
		texts, err := c.q.read(c.ctx, scriptMarks, append([]string{c.q.keys.jobs, c.q.keys.held}, page...))
		if err == nil && len(texts) != len(page) {
			err = fmt.Errorf("script marks answered %d words for %d", len(texts), len(page))
		}
		if err != nil {
			return err
		}
		for i, t := range texts {
			if text, _ := t.(string); text != "" {
				c.report(page[i], "", text)
			}
		}
	}
	return nil
}

func (c *checker) stream(node redis.Cmdable, key string) error {
	last, err := node.XRevRangeN(c.ctx, key, "+", "-", 1).Result()
	if err != nil || len(last) == 0 {
		return err
	}
	for from := "-"; ; {
		page, err := node.XRangeN(c.ctx, key, from, last[0].ID, checkPage).Result()
		if err != nil || len(page) == 0 {
			return err
		}
		ids := make([]string, len(page))
		for i, e := range page {
			ids[i] = e.ID
			if key == c.q.keys.dead {
				ids[i], _ = e.Values["i"].(string)
				c.grave(node, ids[i], e.ID)
			}
		}
		if err := c.judge(key, ids, nil); err != nil {
			return err
		}
		from = "(" + page[len(page)-1].ID
	}
}

// grave reports a post-mortem that the index does not lead to. It may have been
// redriven meanwhile, so it is looked for again.
func (c *checker) grave(node redis.Cmdable, id, entry string) {
	at, err := node.HGet(c.ctx, c.q.keys.index, id).Result()
	if err == nil && at == entry {
		return
	}
	if again, err := node.XRange(c.ctx, c.q.keys.dead, entry, entry).Result(); err == nil && len(again) > 0 {
		c.report(c.q.keys.dead, id, "post-mortem "+entry+" is not in the index")
	}
}

// scan walks a hash or sorted set, whose pages have two texts an id.
func (c *checker) scan(key string, page func(uint64) ([]string, uint64, error)) error {
	for cursor := uint64(0); ; {
		texts, next, err := page(cursor)
		if err != nil {
			return err
		}
		var ids []string
		for i := 0; i < len(texts); i += 2 {
			ids = append(ids, texts[i])
		}
		if len(ids) > 0 {
			if err := c.judge(key, ids, nil); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
