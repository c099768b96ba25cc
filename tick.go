package pawl

import (
	"fmt"
	"strconv"
	"strings"
)

// firing is a schedule whose jobs are to be enqueued, and where it stands then.
type firing struct {
	id, seen string // seen is its state
	next     int64  // ms of its next tick
	missed   int64  // ticks that passed without a job
	jobs     []*item
	times    []int64 // ms of the tick of each job
}

func (f *firing) size() int {
	size := len(f.id) + len(f.seen) + 64
	for _, it := range f.jobs {
		size += it.size()
	}
	return size
}

// fire is what a schedule that is due comes to at now, by the server's clock. Of many
// jobs it takes those that fit a call; the rest is due again in the next.
func (q *queueState) fire(seen seenSchedule, now int64) (firing, error) {
	state, ok := parseScheduleState(seen.state)
	if !ok || state.paused || seen.definition == "" {
		return firing{}, errTorn
	}
	d, err := parseDefinition(seen.definition)
	if err != nil {
		return firing{}, err
	}
	spec, err := parseSpec(d.spec)
	if err != nil {
		return firing{}, err
	}
	p, err := passed(spec, state.next, now, state.anchor, d.missed.keep())
	if err != nil {
		return firing{}, err
	}
	f := firing{id: seen.id, seen: seen.state, next: p.next}
	fire, missed := d.missed.due(p, now)
	f.missed = missed
	bytes := 0
	for i, at := range fire {
		it, err := d.job(q, seen.id, at)
		if err != nil {
			return firing{}, err
		}
		if !fits(i, bytes, 1, it.size()) {
			f.next = at
			break
		}
		bytes += it.size()
		f.jobs, f.times = append(f.jobs, it), append(f.times, at)
	}
	return f, nil
}

// tickWords are the keys and arguments of the script tick.
func (q *queueState) tickWords(firings []firing) (keys []string, args []any) {
	k := &q.keys
	keys = k.living(k.meta, k.minutes, k.wake, laneKey, k.schedules, k.scheduleTimes, k.scheduleStates)
	fixed := len(keys)
	for _, f := range firings {
		args = append(args, f.id, f.seen, f.next, f.missed, len(f.jobs))
		for i, it := range f.jobs {
			unique := 0
			if it.unique != nil {
				keys = append(keys, k.unique(it.unique.Key))
				unique = len(keys) - fixed
			}
			args = append(args, f.times[i], strconv.FormatUint(it.low, 10), it.record, it.how(unique))
		}
	}
	return keys, args
}

// readTick reads the script's answer: the ms until the first tick of the queue, below 0
// if there is none, and a mark for each firing. The jobs of those that were fired get
// their results.
func readTick(text string, firings []firing) (wait int64, marks string, err error) {
	words := strings.Split(text, " ")
	bad := fmt.Errorf("%w: script tick answered %.200q", ErrUnconfirmed, text)
	if len(words) < 2 || len(words[1]) != len(firings) {
		return 0, "", bad
	}
	wait, marks = readWait(words[0]), words[1]
	var a enqueueAnswer
	if len(words) > 2 {
		if a, err = readEnqueue(words[2:]); err != nil {
			return 0, "", bad
		}
	}
	for i, f := range firings {
		for _, it := range f.jobs {
			if marks[i] == 'k' && !a.give(it) {
				return 0, "", bad
			}
		}
	}
	if !a.over() {
		return 0, "", bad
	}
	return wait, marks, nil
}
