package pawl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// errTorn is of a schedule that an eviction or a hand edit has left in parts, until it
// is mended.
var errTorn = errors.New("parts of it are missing")

// mendSchedules gives schedules of which a part was lost what they lack, and removes
// those without a definition. A call that fails waits for the next time.
func (f *feed) mendSchedules(ctx context.Context) {
	for mended := 1; mended > 0; { // large ones come in pages
		c := f.q.scheduleCall("odd", 0)
		attempt(context.Background(), f.q.client.rdb, c)
		if c.err != nil {
			return
		}
		look, err := readSchedules(c.reply)
		if err != nil {
			return
		}
		mended = 0
		for _, seen := range look.seen {
			if ctx.Err() == nil && f.mendSchedule(ctx, seen, look.now) {
				mended++
			}
		}
	}
}

func (f *feed) mendSchedule(ctx context.Context, seen seenSchedule, now int64) bool {
	e, err := seen.mended(now)
	if err != nil {
		return false // another worker may know more
	}
	if lost, err := f.q.writeSchedules(ctx, []edit{e}); err != nil || len(lost) > 0 {
		return false
	}
	if e.state == "" {
		f.q.client.log.Error("pawl: a schedule was lost: its definition had gone, by an eviction, a hand edit or a failover; register it again",
			"queue", f.q.name, "schedule", seen.id)
	} else {
		f.q.client.log.Warn("pawl: a schedule of which an eviction, a hand edit or a failover had left parts was mended",
			"queue", f.q.name, "schedule", seen.id)
	}
	return true
}

// mended is what becomes of a schedule of which a part is missing. One that has lost its
// state begins anew.
func (s seenSchedule) mended(now int64) (edit, error) {
	if s.definition == "" {
		return s.removal(), nil
	}
	if state, ok := parseScheduleState(s.state); ok {
		return edit{id: s.id, seen: s.state, state: state.text()}, nil
	}
	d, err := parseDefinition(s.definition)
	if err != nil {
		return edit{}, err
	}
	spec, err := parseSpec(d.spec)
	if err != nil {
		return edit{}, err
	}
	state := scheduleState{rev: rand.Text()[:8], anchor: now, job: "-"}
	if state.next, err = nextTick(spec, now, now); err != nil {
		return edit{}, err
	}
	return edit{id: s.id, seen: s.state, state: state.text()}, nil
}

// schedules reports schedules of which a part is missing, or does not fit the others.
func (c *checker) schedules() error {
	look, err := c.q.lookAtSchedules(c.ctx, "odd", 0)
	if err != nil {
		return err
	}
	k := &c.q.keys
	for _, seen := range look.seen {
		state, ok := parseScheduleState(seen.state)
		switch {
		case seen.definition == "" && seen.state != "":
			c.report(k.scheduleStates, seen.id, "is the state of no schedule")
		case seen.definition == "":
			c.report(k.scheduleTimes, seen.id, "is no schedule")
		case !ok:
			c.report(k.schedules, seen.id, "is a schedule without a state that can be read")
		case state.paused:
			c.report(k.scheduleTimes, seen.id, "is paused and waits for its time")
		default:
			c.report(k.scheduleTimes, seen.id, fmt.Sprintf("is not where its state says, at %d", state.next))
		}
	}
	return nil
}
