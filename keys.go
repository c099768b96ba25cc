package pawl

import (
	"fmt"
	"regexp"
)

// The keys of a queue. All share the hash tag {name}, so that they lie in one
// slot of a cluster and one script can move a job between them; no key is ever
// built inside a script. docs/storage.md says what each one holds.
type keyspace struct {
	jobs   string // stream: fresh jobs
	held   string // hash: every other live job, id -> record
	due    string // sorted set: ids in held that wait for a time
	prio   string // sorted set: ids in held that are ready, with a priority
	leases string // sorted set: ids being run, by deadline
	runs   string // hash: id -> run entry
	dead   string // stream: post-mortems
	index  string // hash: id -> entry of dead
	meta   string // hash: last id, cursor, fence, counters
	wake   string // list: tokens for waiting workers
	done   string // hash: id -> record of a job that is over and kept
	doneAt string // sorted set: the same ids, by the ms until which they are kept

	schedules      string // hash: id of a schedule -> its definition
	scheduleTimes  string // sorted set: ids of schedules, by the ms of the next tick
	scheduleStates string // hash: id of a schedule -> its state

	minutes string // hash: the counters at the start of each minute of a day
	workers string // sorted set: tags of live workers, by last beat
	info    string // hash: tag -> what a worker says of itself

	prefix string
}

func newKeyspace(namespace, queue string) keyspace {
	p := namespace + ":{" + queue + "}:"
	return keyspace{
		jobs: p + "jobs", held: p + "held", due: p + "due", prio: p + "prio",
		leases: p + "leases", runs: p + "runs", dead: p + "dead", index: p + "dead:index",
		meta: p + "meta", wake: p + "wake", prefix: p, done: p + "done", doneAt: p + "done:at",
		schedules: p + "schedules", scheduleTimes: p + "schedules:at", scheduleStates: p + "schedules:state",
		minutes: p + "minutes", workers: p + "workers", info: p + "workers:info",
	}
}

// unique is the key that holds a deduplication key.
func (k *keyspace) unique(key string) string { return k.prefix + "unique:" + key }

// idem is the key that holds the mark of an idempotency key.
func (k *keyspace) idem(key string) string { return k.prefix + "idem:" + key }

// lane is the key that holds the last call of one lane.
func (k *keyspace) lane(id string) string { return k.prefix + "lane:" + id }

// stop is the key on which a worker's own blocking read is ended.
func (k *keyspace) stop(worker string) string { return k.prefix + "stop:" + worker }

// ended is the channel, no key, on which the ends of kept jobs are told.
func (k *keyspace) ended() string { return k.prefix + "ended" }

// fixed is every key of the queue whose name is known beforehand.
func (k *keyspace) fixed() []string {
	return []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.dead, k.index, k.meta, k.minutes, k.wake, k.workers, k.info,
		k.done, k.doneAt, k.schedules, k.scheduleTimes, k.scheduleStates}
}

// living are the keys that a living job can be in, and then others.
func (k *keyspace) living(then ...string) []string {
	return append([]string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs}, then...)
}

// stats are the keys that the script of this name looks at.
func (k *keyspace) stats() []string {
	return []string{k.jobs, k.held, k.due, k.prio, k.leases, k.dead, k.meta, k.doneAt, k.workers, k.schedules, k.scheduleStates}
}

// queuesKey is the set of the names of a namespace's queues. It has no hash tag:
// it is no queue's, and lies in a slot of its own.
func queuesKey(namespace string) string { return namespace + ":queues" }

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// checkName refuses a queue's name that would break its keys.
func checkName(name string) error {
	if says := wrongName(name); says != "" {
		return fmt.Errorf("%w %s", ErrName, says)
	}
	return nil
}

// wrongName says what is wrong with a part of a key, or "": a brace moves it to
// another slot, a newline or NUL corrupts logs, and a glob character confuses
// operators.
func wrongName(name string) string {
	switch {
	case namePattern.MatchString(name):
		return ""
	case len(name) > 128:
		return fmt.Sprintf("of %d bytes: use at most 128", len(name))
	default:
		return fmt.Sprintf("%q: use 1 to 128 letters, digits, '.', '_', '-' or ':'", name)
	}
}
