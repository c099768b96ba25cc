package pawl

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// seenSchedule is a schedule as it stood in one moment; each part is "" where there is
// none.
type seenSchedule struct {
	id, definition, state string
	at                    string // its score among those that wait for their time
}

func (s seenSchedule) there() bool { return s.definition+s.state+s.at != "" }

// fits reports whether its parts belong to one another.
func (s seenSchedule) fits(state scheduleState) bool {
	if state.paused {
		return s.at == ""
	}
	at, err := strconv.ParseFloat(s.at, 64)
	return err == nil && at == float64(state.next)
}

// edit is what is to become of a schedule if it is still as it was seen.
type edit struct {
	id, seen   string
	state      string // "": it is removed
	definition string // "": it stays as it is
}

func (s seenSchedule) removal() edit { return edit{id: s.id, seen: s.state} }

// register writes definitions, those that are not there already.
func (q *queueState) register(ctx context.Context, definitions map[string]definition) error {
	err := q.editSchedules(ctx, slices.Sorted(maps.Keys(definitions)), func(seen seenSchedule, now int64) (edit, bool, error) {
		e, change, err := seen.become(definitions[seen.id], now)
		if err != nil {
			err = &placed{fmt.Sprintf("schedule %q", seen.id), err}
		}
		return e, change, err
	})
	if err == nil && len(definitions) > 0 {
		q.enlist()
	}
	return err
}

// become is what a schedule is to be by a definition, if that changes anything.
func (s seenSchedule) become(d definition, now int64) (e edit, change bool, err error) {
	text := d.text()
	state, known := parseScheduleState(s.state)
	known = known && s.definition != ""
	if known && s.definition == text && s.fits(state) {
		return edit{}, false, nil
	}
	spec, err := parseSpec(d.spec)
	if err != nil {
		return edit{}, false, err
	}
	switch old, unread := parseDefinition(s.definition); {
	case !known:
		state = scheduleState{anchor: now, job: "-"}
		state.next, err = nextTick(spec, now, now)
	case unread == nil && old.spec == d.spec || state.next <= now:
		// What is due is due, whatever comes after it.
	default:
		state.next, err = nextTick(spec, max(now, state.last), state.anchor)
	}
	state.rev = rand.Text()[:8]
	return edit{id: s.id, seen: s.state, state: state.text(), definition: text}, true, err
}

// changeSchedule edits one that has to be there.
func (q *queueState) changeSchedule(ctx context.Context, id string, change func(seenSchedule) edit) error {
	if q.err != nil {
		return q.err
	}
	if err := checkScheduleID(id); err != nil {
		return err
	}
	return q.editSchedules(ctx, []string{id}, func(seen seenSchedule, _ int64) (edit, bool, error) {
		if seen.definition == "" {
			return edit{}, false, fmt.Errorf("%w: schedule %q", ErrNotFound, id)
		}
		e := change(seen)
		return e, e.id != "", nil
	})
}

// editSchedules looks at schedules and writes what decide makes of them, and looks again
// at those that somebody else has changed meanwhile. Workers of this client hear of it.
func (q *queueState) editSchedules(ctx context.Context, ids []string, decide func(seen seenSchedule, now int64) (edit, bool, error)) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	for n := 0; len(ids) > 0; n++ {
		var lost []string
		for len(ids) > 0 {
			look, err := q.lookAtSchedules(ctx, "ids", 0, ids[:min(len(ids), schedulePage)]...)
			if err != nil {
				return err
			}
			if len(look.seen) == 0 {
				return fmt.Errorf("script schedules answered of none of %d", len(ids))
			}
			ids = ids[len(look.seen):]
			var edits []edit
			for _, seen := range look.seen {
				e, change, err := decide(seen, look.now)
				if err != nil {
					return err
				}
				if change {
					edits = append(edits, e)
				}
			}
			again, err := q.writeSchedules(ctx, edits)
			if err != nil {
				return err
			}
			lost = append(lost, again...)
		}
		if ids = lost; len(ids) > 0 {
			select {
			case <-time.After(retryPause(n)):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// writeSchedules makes edits, and returns the ids of those that came too late.
func (q *queueState) writeSchedules(ctx context.Context, edits []edit) (lost []string, err error) {
	k := &q.keys
	for at := 0; at < len(edits); {
		args, bytes, first := []any{maxSchedules}, 0, at
		for ; at < len(edits); at++ {
			e := &edits[at]
			size := len(e.id) + len(e.seen) + len(e.state) + len(e.definition)
			if !fits(at-first, bytes, 1, size) {
				break
			}
			bytes += size
			args = append(args, e.id, e.seen, e.state, e.definition)
		}
		marks, err := q.call(ctx, scriptSchedule, []string{k.schedules, k.scheduleTimes, k.scheduleStates, laneKey}, args...)
		if err == nil && len(marks) != at-first {
			err = fmt.Errorf("%w: script schedule answered %q", ErrUnconfirmed, marks)
		}
		if err != nil {
			return nil, err
		}
		q.nudgeTicks()
		for i, mark := range marks {
			if mark == 'l' {
				lost = append(lost, edits[first+i].id)
			}
		}
		if strings.Contains(marks, "f") {
			return nil, errCrowded
		}
	}
	return lost, nil
}

// errCrowded is of a queue that has as many schedules as it may have.
var errCrowded = fmt.Errorf("%w: the queue has %d schedules: remove some, or use another queue", ErrFull, maxSchedules)

// schedulePage is how many a call looks at, at most.
const schedulePage = 100

// scheduleLook is an answer of the script schedules.
type scheduleLook struct {
	now  int64 // ms
	wait int64 // ms until the first tick that is yet to come; below 0: there is none
	seen []seenSchedule
}

func (q *queueState) scheduleCall(which string, skip int, ids ...string) *call {
	k := &q.keys
	args := []any{which, skip}
	for _, id := range ids {
		args = append(args, id)
	}
	return &call{script: scriptSchedules, keys: []string{k.schedules, k.scheduleTimes, k.scheduleStates}, args: args}
}

func (q *queueState) lookAtSchedules(ctx context.Context, which string, skip int, ids ...string) (scheduleLook, error) {
	c := q.scheduleCall(which, skip, ids...)
	parts, err := q.read(ctx, c.script, c.keys, c.args...)
	if err != nil {
		return scheduleLook{}, err
	}
	return readSchedules(parts)
}

func readSchedules(reply any) (look scheduleLook, err error) {
	parts, _ := reply.([]any)
	word := func(i int) string { s, _ := parts[i].(string); return s }
	if len(parts) < 2 || len(parts)%4 != 2 {
		return look, fmt.Errorf("script schedules answered %d words", len(parts))
	}
	if look.now, err = strconv.ParseInt(word(0), 10, 64); err != nil {
		return look, fmt.Errorf("script schedules answered the time %q", word(0))
	}
	look.wait = readWait(word(1))
	for i := 2; i < len(parts); i += 4 {
		look.seen = append(look.seen, seenSchedule{word(i), word(i + 1), word(i + 2), word(i + 3)})
	}
	return look, nil
}

// readWait is a number of ms, or below 0.
func readWait(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// scheduleIDs is all there are, sorted, in whatever state they are.
func (q *queueState) scheduleIDs(ctx context.Context) ([]string, error) {
	look, err := q.lookAtSchedules(ctx, "all", 0)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(look.seen))
	for i, s := range look.seen {
		ids[i] = s.id
	}
	slices.Sort(ids)
	return ids, nil
}
