//go:build !race

package pawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A modelState is all that a queue holds in Redis, but its lanes, as texts by
// "<key> <member>".
type modelState map[string]string

// state is what the model says of Redis.
func (m *modelQueue) state() modelState {
	s := modelState{}
	for _, id := range m.order {
		j := m.jobs[id]
		switch {
		case j.live() && j.streamed:
			s["jobs "+id] = j.record
		case j.live():
			s["held "+id] = j.record
		}
		switch j.place {
		case modelDue, modelParked:
			s["due "+id] = modelText(j.score)
		case modelPrio:
			s["prio "+id] = modelText(j.score)
		case modelLeased:
			s["leases "+id] = modelText(j.score)
			s["runs "+id] = j.token + "|" + strconv.Itoa(j.crashes) + "|" + j.runFlags() + "|" + j.before + j.progress
		case modelDead:
			s["dead "+id] = j.record
		}
	}
	for key, u := range m.uniques {
		value := fmt.Sprintf("%s %c %d", u.holder, u.mode, u.till)
		if u.next != "" {
			value += " " + u.next
		}
		s["unique "+key] = fmt.Sprintf("%s ttl %t", value, u.expires > 0)
	}
	for id, k := range m.kept {
		s["done "+id], s["done:at "+id] = k.record, modelText(k.till)
	}
	for key, k := range m.idems {
		s["idem "+key] = fmt.Sprintf("%s %c %d ttl %t", k.holder, k.mode, k.till, k.expires > 0)
	}
	for name, n := range m.counters {
		if n > 0 {
			s["meta n:"+name] = modelText(n)
		}
	}
	for slot, text := range m.minutes {
		s["minutes "+modelText(slot)] = text
	}
	if m.minute > 0 {
		s["minutes now"] = modelText(m.minute)
	}
	if m.paused > 0 {
		s["meta paused"] = modelText(m.paused)
	}
	if m.last > 0 {
		s["meta last"] = fmt.Sprint(m.last)
	}
	if m.cursor != "" {
		s["meta cursor"], s["meta fence"] = m.cursor, fmt.Sprint(m.lastFence)
	}
	if m.wake > 0 {
		s["wake"] = fmt.Sprint(m.wake)
	}
	return s
}

// runFlags is what the run entry of a job says beside its token and its crashes.
func (j *modelJob) runFlags() string {
	flags := j.flags
	if j.ran {
		flags += "r"
	}
	if j.unrun {
		flags += "u"
	}
	return flags
}

func modelText(n int64) string { return strconv.FormatInt(n, 10) }

// compare returns the differences between Redis and the model, but for what the
// model leaves open: the addresses of post-mortems, whether a suspect that a
// lease passed over was sent to the back, and where a lease goes on looking.
func (m *modelQueue) compare(actual modelState) error {
	delete(actual, "meta turn")
	delete(actual, "meta swept")
	for _, id := range m.order {
		j := m.jobs[id]
		if j.place == modelGone {
			continue
		}
		if j.moved > 0 && (actual["leases "+id] == modelText(j.moved) || actual["due "+id] == modelText(j.moved)) {
			j.score = j.moved
		}
		j.moved = 0
		if j.place == modelDead {
			j.grave = actual["index "+id]
			delete(actual, "index "+id)
		}
	}
	want := m.state()
	var wrong []string
	for name, text := range actual {
		if want[name] != text {
			wrong = append(wrong, fmt.Sprintf("%s is %q, want %q", name, text, want[name]))
		}
	}
	for name, text := range want {
		if _, there := actual[name]; !there {
			wrong = append(wrong, fmt.Sprintf("%s is missing, want %q", name, text))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("the state differs:\n\t%s", strings.Join(wrong, "\n\t"))
	}
	return m.laws(actual)
}

// laws are formulas that the design relies on, over what Redis holds.
func (m *modelQueue) laws(actual modelState) error {
	size := map[string]int64{}
	for name := range actual {
		key, _, _ := strings.Cut(name, " ")
		size[key]++
	}
	fresh := int64(0)
	for _, j := range m.jobs {
		if j.place == modelFresh {
			fresh++
		}
	}
	living := size["jobs"] + size["held"]
	if got := living - size["leases"] - size["due"] - size["prio"]; got != fresh {
		return fmt.Errorf("the formula counts %d fresh jobs, there are %d", got, fresh)
	}
	count := func(name string) int64 { return max(0, modelNumber(actual["meta n:"+name])) }
	ended := count("done") + count("discarded") + count("cancelled") + count("purged") + count("dropped")
	if got := living + size["dead"] + ended; got != count("enqueued") {
		return fmt.Errorf("%d jobs were enqueued, %d are accounted for", count("enqueued"), got)
	}
	return nil
}

// add puts a hash, by the name of its key.
func (s modelState) add(key string, fields map[string]string) {
	for field, value := range fields {
		if value != "" || key != "meta" {
			s[key+" "+field] = value
		}
	}
}

func (s modelState) addScores(key string, scores map[string]float64) {
	for id, score := range scores {
		s[key+" "+id] = strconv.FormatFloat(score, 'f', -1, 64)
	}
}

// addStream puts a stream. A post-mortem goes by the id of its job, and where
// the index leads elsewhere that is seen as another entry.
func (s modelState) addStream(key, entry string, fields []string) {
	switch {
	case key == "jobs" && len(fields) == 2 && fields[0] == "r":
		s["jobs "+entry] = fields[1]
	case key == "dead" && len(fields) == 4 && fields[0] == "i" && s["index "+fields[1]] == entry:
		s["dead "+fields[1]] = fields[3]
	default:
		s["stray "+key+" "+entry] = strings.Join(fields, " ")
	}
}

// key puts a key that is not of the fixed ones.
func (s modelState) key(rest, value string, ttl bool) {
	name, held, ok := strings.Cut(rest, ":")
	if ok && (name == "unique" || name == "idem") {
		s[name+" "+held] = fmt.Sprintf("%s ttl %t", value, ttl)
	} else {
		s["stray "+rest] = value
	}
}

var modelFixed = []string{"jobs", "held", "due", "prio", "leases", "runs", "dead", "dead:index", "meta", "minutes", "wake", "done", "done:at"}

// modelReadMini reads the state past the protocol, since a test reads it after each
// operation.
func modelReadMini(m *miniredis.Miniredis, k *keyspace) modelState {
	s := modelState{}
	for name, key := range map[string]string{"held": k.held, "runs": k.runs, "index": k.index, "meta": k.meta, "minutes": k.minutes, "done": k.done} {
		fields, _ := m.HKeys(key)
		hash := make(map[string]string, len(fields))
		for _, f := range fields {
			hash[f] = m.HGet(key, f)
		}
		s.add(name, hash)
	}
	for name, key := range map[string]string{"due": k.due, "prio": k.prio, "leases": k.leases, "done:at": k.doneAt} {
		scores, _ := m.SortedSet(key)
		s.addScores(name, scores)
	}
	for name, key := range map[string]string{"jobs": k.jobs, "dead": k.dead} {
		entries, _ := m.Stream(key)
		for _, e := range entries {
			s.addStream(name, e.ID, e.Values)
		}
	}
	if tokens, _ := m.List(k.wake); len(tokens) > 0 {
		s["wake"] = fmt.Sprint(len(tokens))
	}
	for _, key := range m.Keys() {
		rest, _ := strings.CutPrefix(key, k.prefix)
		if !strings.HasPrefix(rest, "lane:") && !slices.Contains(modelFixed, rest) {
			value, _ := m.Get(key)
			s.key(rest, value, m.TTL(key) > 0)
		}
	}
	return s
}

// modelReadRedis reads the state of a real server in two round trips.
func modelReadRedis(ctx context.Context, rdb *redis.Client, k *keyspace) (modelState, error) {
	s := modelState{}
	pipe := rdb.Pipeline()
	hashes := map[string]*redis.MapStringStringCmd{"held": pipe.HGetAll(ctx, k.held), "runs": pipe.HGetAll(ctx, k.runs),
		"index": pipe.HGetAll(ctx, k.index), "meta": pipe.HGetAll(ctx, k.meta), "minutes": pipe.HGetAll(ctx, k.minutes), "done": pipe.HGetAll(ctx, k.done)}
	sets := map[string]*redis.ZSliceCmd{"due": pipe.ZRangeWithScores(ctx, k.due, 0, -1),
		"prio": pipe.ZRangeWithScores(ctx, k.prio, 0, -1), "leases": pipe.ZRangeWithScores(ctx, k.leases, 0, -1),
		"done:at": pipe.ZRangeWithScores(ctx, k.doneAt, 0, -1)}
	jobs, dead := pipe.Do(ctx, "XRANGE", k.jobs, "-", "+"), pipe.Do(ctx, "XRANGE", k.dead, "-", "+")
	wake, keys := pipe.LLen(ctx, k.wake), pipe.Keys(ctx, k.prefix+"*")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for name, hash := range hashes {
		s.add(name, hash.Val())
	}
	for name, set := range sets {
		scores := map[string]float64{}
		for _, z := range set.Val() {
			scores[z.Member.(string)] = z.Score
		}
		s.addScores(name, scores)
	}
	for name, reply := range map[string]*redis.Cmd{"jobs": jobs, "dead": dead} {
		entries, _ := reply.Slice()
		for _, e := range entries {
			entry := e.([]any)
			var fields []string
			for _, f := range entry[1].([]any) {
				fields = append(fields, f.(string))
			}
			s.addStream(name, entry[0].(string), fields)
		}
	}
	if n := wake.Val(); n > 0 {
		s["wake"] = fmt.Sprint(n)
	}
	values := map[string]*redis.StringCmd{}
	ttls := map[string]*redis.DurationCmd{}
	for _, key := range keys.Val() {
		if rest, _ := strings.CutPrefix(key, k.prefix); !strings.HasPrefix(rest, "lane:") && !slices.Contains(modelFixed, rest) {
			values[rest], ttls[rest] = pipe.Get(ctx, key), pipe.PTTL(ctx, key)
		}
	}
	_, err := pipe.Exec(ctx)
	for _, rest := range slices.Sorted(maps.Keys(values)) {
		s.key(rest, values[rest].Val(), ttls[rest].Val() > 0)
	}
	return s, err
}
