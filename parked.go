package pawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/record"
)

// parkedFrom is the least score of a parked job in due; see lua/lib/parked.lua.
const parkedFrom = 1e15

// behind reads behind which unique keys jobs wait; "" of one whose record has gone or
// cannot be read, or has none.
func (q *queueState) behind(ctx context.Context, ids []string) ([]string, error) {
	return await(ctx, q.client.rdb, func(ctx context.Context) ([]string, error) {
		bodies, err := q.client.rdb.HMGet(ctx, q.keys.held, ids...).Result()
		if err == nil && len(bodies) != len(ids) {
			err = fmt.Errorf("HMGET answered %d of %d fields", len(bodies), len(ids))
		}
		keys := make([]string, len(bodies))
		for i, body := range bodies {
			text, _ := body.(string)
			if rec, bad := record.Decode([]byte(text)); bad == nil && rec.Unique != nil {
				keys[i] = q.keys.unique(rec.Unique.Key)
			}
		}
		return keys, err
	})
}

// unpark has parked jobs looked at that may wait behind nobody. Their unique keys are
// in their records, which no script reads.
func (f *feed) unpark(ctx context.Context, ids []string) {
	behind, err := f.q.behind(ctx, ids)
	if err != nil {
		return // the next look will find them
	}
	k := &f.q.keys
	c := &call{script: scriptUnpark, keys: []string{k.jobs, k.held, k.due, k.leases, k.meta, k.minutes, k.wake}}
	fixed := len(c.keys)
	for i, id := range ids {
		index := 0
		if behind[i] != "" {
			c.keys = append(c.keys, behind[i])
			index = len(c.keys) - fixed
		}
		c.args = append(c.args, id, index)
	}
	attempt(context.Background(), f.q.client.rdb, c)
}

// parked reports, of a page of due, the jobs that wait behind nobody. A job that was
// parked and is parked still was so all the time, since none is parked again.
func (c *checker) parked(page []string) error {
	k := &c.q.keys
	var ids []string
	for i := 0; i+1 < len(page); i += 2 {
		if score, err := strconv.ParseFloat(page[i+1], 64); err == nil && score >= parkedFrom {
			ids = append(ids, page[i])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rdb := c.q.client.rdb
	behind, err := c.q.behind(c.ctx, ids)
	if err != nil {
		return err
	}
	var alone []string
	for i, key := range behind {
		value, err := "", error(nil)
		if key != "" {
			if value, err = rdb.Get(c.ctx, key).Result(); err != nil && err != redis.Nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return err
			}
		}
		if words := strings.Split(value, " "); len(words) < 4 || words[3] != ids[i] {
			alone = append(alone, ids[i])
		}
	}
	for _, id := range alone {
		score, err := rdb.ZScore(c.ctx, k.due, id).Result()
		if err != nil && err != redis.Nil {
			return err
		}
		if err == nil && score >= parkedFrom {
			c.report(k.due, id, "is parked behind nothing")
		}
	}
	return nil
}
