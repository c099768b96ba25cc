package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// RedriveReport counts what a redrive did: Matched jobs were dead, and of these
// Moved are ready again. The others are Refused.
type RedriveReport struct {
	Matched, Moved int
	// Refused: another has the unique key. The dead job stays.
	Refused []RefusedRedrive
	// DiedAgain is how many of the moved jobs died again while the redrive was
	// under way; see Redrive.StopAfter, without which it is not looked at.
	DiedAgain int
	// Stopped: DiedAgain has come to Redrive.StopAfter. Matched then counts the jobs
	// that the call came to; the rest are still dead.
	Stopped bool
}

// RefusedRedrive is a dead job that stays dead: Holder, a live job, or one whose
// window lasts, holds its unique key. Or Holder is zero, and Err says that something
// else has made the key of another type than pawl's.
type RefusedRedrive struct {
	ID, Holder ID
	Err        error
}

// Redrive sends jobs back to ready with fresh attempts and crashes. Id, history
// and idempotency key stay, and a unique key is taken again, or the job is
// Refused. The ids that are not dead are named in an error that wraps
// ErrNotFound; the others were moved all the same. Redriving twice moves once, and
// so does an id that is given twice. No ids are no call, and no error. Where a
// RefusedRedrive has an Err, it is in the error, and the other jobs were moved.
// It waits no longer than ctx, or 5 s if ctx has no deadline. ErrFull: Redis has
// no memory left; ErrUnconfirmed: some more may have been moved than the report
// says, and another redrive of the same ids is safe.
func (d *DeadLetters) Redrive(ctx context.Context, ids ...ID) (RedriveReport, error) {
	report := RedriveReport{}
	if d.q.err != nil {
		return report, d.q.wrap("redrive", d.q.err)
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	seen := map[ID]bool{}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id ID) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
	var missing []string
	for len(ids) > 0 {
		n := min(len(ids), redrivePage)
		some, gone, err := d.redriveIDs(ctx, ids[:n])
		report.add(some)
		missing = append(missing, gone...)
		if err != nil {
			return report, d.q.wrap("redrive", err)
		}
		ids = ids[n:]
	}
	err := report.mistyped()
	if len(missing) > 0 {
		err = errors.Join(fmt.Errorf("%w among the dead (Queue.Get says where a job is): %s", ErrNotFound, strings.Join(missing, ", ")), err)
	}
	return report, d.q.wrap("redrive", err)
}

// mistyped is an error if keys of a wrong type kept jobs from being moved: the first.
func (r *RedriveReport) mistyped() (first error) {
	n := 0
	for _, refused := range r.Refused {
		if refused.Err != nil {
			if n++; n == 1 {
				first = refused.Err
			}
		}
	}
	if n > 1 {
		return fmt.Errorf("%w; and %d more, see Refused", first, n-1)
	}
	return first
}

func (r *RedriveReport) add(more RedriveReport) {
	r.Matched += more.Matched
	r.Moved += more.Moved
	r.Refused = append(r.Refused, more.Refused...)
}

// redrivePage is how many jobs are looked up at once by their ids.
const redrivePage = 16

// redriveIDs moves jobs, and names those that are not dead. One that was redriven
// and died again since it was read is read again.
func (d *DeadLetters) redriveIDs(ctx context.Context, ids []ID) (report RedriveReport, missing []string, err error) {
	for len(ids) > 0 {
		entries, err := d.graves(ctx, ids)
		if err != nil {
			return report, missing, err
		}
		var page []redis.XMessage
		for i, e := range entries {
			if e.ID == "" {
				missing = append(missing, ids[i].String())
			} else {
				page = append(page, e)
			}
		}
		ids = nil
		words, some, err := d.redrive(ctx, page, nil, nil)
		report.add(some)
		if err != nil {
			return report, missing, err
		}
		for i, word := range words {
			text, _ := page[i].Values["i"].(string)
			id, _ := jobid.FromText(text)
			switch word {
			case "missing":
				missing = append(missing, id.String())
			case "changed":
				ids = append(ids, id)
			}
		}
	}
	return report, missing, nil
}

// graves reads the entries of jobs by their ids; the zero entry for one that is
// not dead.
func (d *DeadLetters) graves(ctx context.Context, ids []ID) ([]redis.XMessage, error) {
	return await(ctx, d.q.client.rdb, func(ctx context.Context) ([]redis.XMessage, error) {
		rdb, k := d.q.client.rdb, &d.q.keys
		texts := make([]string, len(ids))
		for i, id := range ids {
			texts[i], _ = jobid.Text(id)
		}
		places, err := rdb.HMGet(ctx, k.index, texts...).Result()
		if err == nil && len(places) != len(ids) {
			err = fmt.Errorf("HMGET answered %d of %d fields", len(places), len(ids))
		}
		if err != nil {
			return nil, err
		}
		pipe := rdb.Pipeline()
		cmds := make([]*redis.XMessageSliceCmd, len(ids))
		for i, p := range places {
			place, _ := p.(string)
			if _, _, ok := splitPosition(place); ok {
				cmds[i] = pipe.XRange(ctx, k.dead, place, place)
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		entries := make([]redis.XMessage, len(ids))
		for i, cmd := range cmds {
			// After a hand edit the entry may be another job's, or be spelled in a
			// way that no script would ever take for the same.
			if cmd != nil && len(cmd.Val()) == 1 && cmd.Val()[0].Values["i"] == texts[i] && cmd.Val()[0].ID == places[i] {
				entries[i] = cmd.Val()[0]
			}
		}
		return entries, nil
	})
}

// redrive moves the jobs of entries, in calls of bounded size, and returns the
// script's word for each. moved is told of each job that was moved; it may be
// nil. With a dry map nothing is changed: the map keeps, from call to call, which
// unique keys would have been taken, and by whom.
func (d *DeadLetters) redrive(ctx context.Context, page []redis.XMessage, dry map[string]string, moved func(id string)) (words []string, report RedriveReport, err error) {
	k := &d.q.keys
	for len(page) > 0 {
		now, err := d.q.serverTime(ctx)
		if err != nil {
			return words, report, err
		}
		keys := []string{k.jobs, k.held, k.due, k.prio, k.runs, k.dead, k.index, k.meta, k.minutes, k.wake, laneKey}
		fixed := len(keys)
		args := []any{"go"}
		if dry != nil {
			args[0] = "dry"
		}
		var uniques []string
		bytes := 0
		for _, e := range page {
			body, how, key := d.revive(e, now, len(keys)-fixed+1)
			if !fits(len(uniques), bytes, 1, len(body)) {
				break
			}
			bytes += len(body)
			if key != "" {
				keys = append(keys, key)
			}
			uniques = append(uniques, key)
			id, _ := e.Values["i"].(string)
			args = append(args, id, e.ID, body, how)
		}
		text, err := d.q.call(ctx, scriptRedrive, keys, args...)
		if err != nil {
			return words, report, err
		}
		answers := strings.Fields(text)
		if len(answers) != len(uniques) {
			return words, report, fmt.Errorf("script redrive answered %q for %d jobs", text, len(uniques))
		}
		for i, word := range answers {
			id, _ := page[i].Values["i"].(string)
			if dry != nil {
				word = takeDry(dry, id, uniques[i], word)
			} else if word == "ok" {
				report.Moved++
				if moved != nil {
					moved(id)
				}
			}
			report.count(id, word, uniques[i])
			words = append(words, word)
		}
		page = page[len(answers):]
	}
	return words, report, nil
}

// takeDry is the script's word for a job, if those before it had been moved.
func takeDry(taken map[string]string, id, key, word string) string {
	switch {
	case key == "" || word == "missing" || word == "changed":
	case taken[key] != "":
		return taken[key]
	case word == "ok":
		taken[key] = id
	}
	return word
}

// count adds the script's word for one job, but for Moved.
func (r *RedriveReport) count(id, word, unique string) {
	own, _ := jobid.FromText(id)
	switch word {
	case "missing", "changed":
		return
	case "ok":
	case "mistyped":
		r.Refused = append(r.Refused, RefusedRedrive{ID: own, Err: fmt.Errorf(
			"%s was not moved: its unique key %s is of a wrong type, as pawl never makes one; delete it", own, unique)})
	default:
		holder, _ := jobid.FromText(word)
		r.Refused = append(r.Refused, RefusedRedrive{ID: own, Holder: holder})
	}
	r.Matched++
}

// revive is the record with which a job goes back, and what the script wants to
// know of its unique key, the index-th of the call.
func (d *DeadLetters) revive(e redis.XMessage, now time.Time, index int) (body []byte, how, key string) {
	id, _ := e.Values["i"].(string)
	text, _ := e.Values["p"].(string)
	rec, err := record.Decode([]byte(text))
	if err != nil {
		// Of a newer version, which its worker may know, or edited by hand: then
		// it is buried as corrupt, bytes kept.
		return []byte(text), "raw", ""
	}
	body = revived(rec, now).Append(nil)
	if rec.Dead != nil && rec.Dead.Reason == string(ReasonCorrupt) {
		return rec.Payload, "raw", "" // as it was
	}
	how, key = d.uniqueAgain(id, rec, index)
	return body, how, key
}

// uniqueAgain is how a job takes its unique key again, if it has one.
func (d *DeadLetters) uniqueAgain(idText string, rec *record.Record, index int) (how, key string) {
	u := rec.Unique
	if u == nil {
		return "", ""
	}
	mode, till := 'd', int64(0)
	if UniqueUntil(u.Until) == UntilStarted {
		mode = 's'
	}
	if id, ok := jobid.FromText(idText); ok && u.For > 0 {
		till = ceilTime(jobid.Time(id).Add(u.For))
	}
	return fmt.Sprintf("%d %c %d", index, mode, till), d.q.keys.unique(u.Key)
}
