package pawl

import (
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/jobid"
)

// Filter picks jobs. Zero fields do not filter. A Since after Until is ErrInvalid.
type Filter struct {
	Kind   string
	Header Header    // of this key and value
	Since  time.Time // enqueued at or after, by the server's clock
	Until  time.Time // enqueued before
	Limit  int       // at most so many; 0 or less: all
}

// checkSpan refuses a span of time that nothing is in.
func checkSpan(since, until time.Time) error {
	if !since.IsZero() && !until.IsZero() && since.After(until) {
		return invalidf("a filter has Since %v after Until %v: exchange them", since, until)
	}
	return nil
}

func (f *Filter) matches(j *RawJob) bool {
	value, has := j.Headers[f.Header.Key]
	return (f.Kind == "" || j.Kind == f.Kind) &&
		(f.Header.Key == "" || has && value == f.Header.Value) &&
		(f.Since.IsZero() || !j.EnqueuedAt.Before(f.Since)) &&
		(f.Until.IsZero() || j.EnqueuedAt.Before(f.Until))
}

// listPage is how many jobs one call looks at, at most: some 0.7 ms of Redis.
const listPage = 250

// List walks the jobs of a state that match, in pages:
//
//	ready     those that were given back or whose lease ran out, then those
//	          whose time has come, then by priority, then fresh ones; each
//	          oldest first, but the priorities
//	delayed   next due first
//	running   oldest first
//	parked    in no order that is promised
//	dead      in the order of their deaths; Dead().List says more
//	done      those that are over and kept (Retain), cancelled and discarded ones
//	          too, in the order in which their time will be over
//
// Jobs that were enqueued later are not seen. Those that go, change their state
// or are rescheduled meanwhile may or may not be; none is seen twice, for which
// it remembers the ids that it has passed, and each is as it stood when its page
// was read. An error ends the walk: ErrInvalid for another state or a filter that
// nothing can match, ErrNotFound if the queue was never used. Each
// page waits no longer than ctx, or 5 s if ctx has no deadline.
func (q *Queue) List(ctx context.Context, s State, f Filter) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		matched, seen := 0, map[string]bool{}
		err := q.walk(ctx, s, f, func(page []JobInfo) (more bool, err error) {
			for _, info := range page {
				if seen[info.text] || !f.matches(&info.RawJob) {
					continue
				}
				seen[info.text] = true
				if matched++; !yield(info, nil) || matched == f.Limit {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(JobInfo{}, q.wrap("list", err))
		}
	}
}

// walk hands on pages of the jobs of a state until take wants no more or fails.
// Of f it only looks whether anything can match.
func (q *queueState) walk(ctx context.Context, s State, f Filter, take func([]JobInfo) (more bool, err error)) error {
	switch s {
	case StateReady, StateDelayed, StateRunning, StateParked, StateDead, StateDone:
	default:
		return invalidf("there is no state %q to list: give StateReady, StateDelayed, StateRunning, StateParked, StateDead, or StateDone for all that are over", s)
	}
	if err := checkSpan(f.Since, f.Until); err != nil {
		return err
	}
	if err := q.exist(ctx); err != nil {
		return err
	}
	switch s {
	case StateReady:
		// A due job with a priority moves among the priorities when a worker sees
		// it: they are walked later, or it would be missed.
		return q.walkSources(ctx, s, []string{"lapsed", "due", "prio", "fresh"}, take)
	case StateDelayed:
		return q.walkSources(ctx, s, []string{"delayed"}, take)
	case StateParked:
		return q.walkSources(ctx, s, []string{"parked"}, take)
	case StateDone:
		return q.walkSources(ctx, s, []string{"done"}, take)
	case StateRunning:
		return q.walkRunning(ctx, take)
	default:
		return q.walkDead(ctx, take)
	}
}

// walkSources passes over jobs that are younger than the walk, or it would not
// end where each job that is seen makes another one.
func (q *queueState) walkSources(ctx context.Context, s State, sources []string, take func([]JobInfo) (more bool, err error)) error {
	last, err := q.lastID(ctx)
	if err != nil {
		return err
	}
	for _, source := range sources {
		for score, id := "", ""; ; {
			page, now, err := q.listed(ctx, source, score, id)
			if err != nil {
				return err
			}
			infos := q.infos(page, s, now)
			all := len(infos)
			infos = slices.DeleteFunc(infos, func(j JobInfo) bool { return j.ID != (ID{}) && jobid.Micros(j.ID) > last })
			if more, err := take(infos); err != nil || !more {
				return err
			}
			if score, id = page[1], page[2]; id == "" || source == "fresh" && len(infos) < all {
				break
			}
		}
	}
	return nil
}

// lastID is the microseconds of the last id that the queue has given out.
func (q *queueState) lastID(ctx context.Context) (int64, error) {
	text, err := await(ctx, q.client.rdb, func(ctx context.Context) (string, error) {
		text, err := q.client.rdb.HGet(ctx, q.keys.meta, "last").Result()
		if err == redis.Nil {
			err = nil
		}
		return text, err
	})
	last, bad := strconv.ParseInt(text, 10, 64)
	if bad != nil {
		last = math.MaxInt64 // it was lost
	}
	return last, err
}

// walkRunning takes the ids first: a lease moves whenever it is renewed, and a
// walk along the leases would meet one job again and miss another. There are no
// more of them than the fleet has slots.
func (q *queueState) walkRunning(ctx context.Context, take func([]JobInfo) (more bool, err error)) error {
	ids, err := q.leasedIDs(ctx)
	if err != nil {
		return err
	}
	for len(ids) > 0 {
		n := min(len(ids), listPage)
		args := make([]any, n)
		for i, id := range ids[:n] {
			args[i] = id
		}
		page, now, err := q.listed(ctx, "running", "", "", args...)
		if err != nil {
			return err
		}
		infos := q.infos(page, StateRunning, now)
		named := make([]*JobInfo, len(infos))
		for i := range infos {
			named[i] = &infos[i]
		}
		if err := q.nameWorkers(ctx, now, named); err != nil {
			return err
		}
		if more, err := take(infos); err != nil || !more {
			return err
		}
		// It may have stopped before the last of them, at a megabyte.
		ids = ids[max(1, slices.Index(ids, page[2])+1):]
	}
	return nil
}

// leasedIDs are the ids that have a run entry, oldest first.
func (q *queueState) leasedIDs(ctx context.Context) ([]string, error) {
	var ids []string
	for cursor := uint64(0); ; {
		type page struct {
			texts []string
			next  uint64
		}
		p, err := await(ctx, q.client.rdb, func(ctx context.Context) (page, error) {
			texts, next, err := q.client.rdb.HScan(ctx, q.keys.runs, cursor, "", listPage).Result()
			return page{texts, next}, err
		})
		if err != nil {
			return nil, err
		}
		for i := 0; i < len(p.texts); i += 2 {
			ids = append(ids, p.texts[i])
		}
		if cursor = p.next; cursor == 0 {
			slices.Sort(ids) // of one length for some centuries
			return slices.Compact(ids), nil
		}
	}
}

func (q *queueState) walkDead(ctx context.Context, take func([]JobInfo) (more bool, err error)) error {
	d := &DeadLetters{q}
	top, err := d.top(ctx)
	if err != nil || top == "" {
		return err
	}
	return d.walk(ctx, "-", top, func(page []redis.XMessage) (more bool, err error) {
		var infos []JobInfo
		for _, e := range page {
			id, _ := e.Values["i"].(string)
			body, _ := e.Values["p"].(string)
			infos = append(infos, (&found{id: id, state: StateDead, record: body, place: e.ID}).info(q))
		}
		return take(infos)
	})
}

// listed calls the script list. The page's first three words are the server's ms
// and the score and id to go on after; then four for each job.
func (q *queueState) listed(ctx context.Context, source, score, id string, ids ...any) (page []string, now time.Time, err error) {
	parts, err := q.read(ctx, scriptList, q.keys.living(q.keys.meta, q.keys.done, q.keys.doneAt), append([]any{source, score, id, listPage}, ids...)...)
	if err != nil {
		return nil, now, err
	}
	page = make([]string, max(3, len(parts)))
	for i, p := range parts {
		page[i], _ = p.(string)
	}
	ms, _ := strconv.ParseInt(page[0], 10, 64)
	return page, time.UnixMilli(ms), nil
}

func (q *queueState) infos(page []string, s State, now time.Time) []JobInfo {
	infos := make([]JobInfo, 0, len(page)/4)
	for i := 3; i+3 < len(page); i += 4 {
		f := found{id: page[i], state: s, record: page[i+1], place: page[i+2], run: page[i+3], now: now}
		infos = append(infos, f.info(q))
	}
	return infos
}
