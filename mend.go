package pawl

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// mendPages bounds what the workers of a queue have it look over in a minute, 200
// things a page.
const mendPages = 50

// mending is what has been mended in the queue, by whomever, as far as a worker
// knows.
type mending struct {
	known        bool // the counters were read before the first lease
	lost, healed spell
}

// spell is a counter that ought to stand still: while it grows, from one look to
// the next, it is told once.
type spell struct {
	count   int64
	growing bool
}

// grew takes the counter anew, and is by how much it grew, or 0 if that is no news.
func (s *spell) grew(count int64) (by int64) {
	if count < s.count {
		s.count = 0 // the counters were lost, and start again
	}
	by = count - s.count
	news := by > 0 && !s.growing
	s.count, s.growing = count, by > 0
	if !news {
		return 0
	}
	return by
}

// beginMending reads how the counters stand before this worker leases, which may
// mend. It does not wait for a Redis that is away.
func (w *Worker) beginMending(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	counts, err := await(ctx, w.client.rdb, func(ctx context.Context) ([]*redis.SliceCmd, error) {
		pipe := w.client.rdb.Pipeline()
		cmds := make([]*redis.SliceCmd, len(w.feeds))
		for i, f := range w.feeds {
			cmds[i] = pipe.HMGet(ctx, f.q.keys.meta, "n:lost", "n:healed")
		}
		_, err := pipe.Exec(ctx)
		return cmds, err
	})
	if err != nil {
		return // the first look will tell
	}
	for i, f := range w.feeds {
		number := func(v any) int64 { s, _ := v.(string); n, _ := strconv.ParseInt(s, 10, 64); return n }
		if values := counts[i].Val(); len(values) == 2 {
			f.mending = mending{known: true, lost: spell{count: number(values[0])}, healed: spell{count: number(values[1])}}
		}
	}
}

// mend goes on with the walk, if no other worker did a while ago, and says if
// anything was mended since it last looked. A call that fails waits for the next
// time.
func (f *feed) mend(ctx context.Context) {
	k, first := &f.q.keys, "1"
	for page := 1; ctx.Err() == nil; page++ {
		c := &call{script: scriptMend, args: []any{first}, keys: k.living(k.dead, k.index, k.meta, k.minutes, k.done, k.doneAt)}
		attempt(context.Background(), f.q.client.rdb, c)
		text, _ := c.reply.(string)
		words := strings.Split(text, " ")
		if c.err != nil || len(words) < 3 {
			return
		}
		if len(words) > 3 {
			f.unpark(ctx, words[3:])
		}
		if words[2] == "0" || page == mendPages {
			lost, _ := strconv.ParseInt(words[0], 10, 64)
			healed, _ := strconv.ParseInt(words[1], 10, 64)
			f.tellMended(lost, healed)
			return
		}
		first = "0"
	}
}

// tellMended has one line for each of the two, however many jobs it was.
func (f *feed) tellMended(lost, healed int64) {
	m := &f.mending
	if !m.known {
		*m = mending{known: true, lost: spell{count: lost}, healed: spell{count: healed}}
		return
	}
	if n := m.lost.grew(lost); n > 0 {
		f.q.client.log.Error("pawl: jobs were lost: their records had gone, by an eviction, a hand edit or a failover", "queue", f.q.name, "jobs", n)
	}
	if n := m.healed.grew(healed); n > 0 {
		f.q.client.log.Warn("pawl: what an eviction, a hand edit or a failover had broken was mended", "queue", f.q.name, "times", n)
	}
}
