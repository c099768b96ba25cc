package pawl

import (
	"errors"
	"strconv"

	"github.com/pawlq/pawl/internal/jobid"
)

// maxMicros is 2^53, above which two numbers of Lua are one; see lua/lib/add.lua.
const maxMicros = 1 << 53

// enqueueAnswer is what a script says of new jobs: "<us> <marks> <holder>…", as
// words. It is used up by giving each job its result, in their order.
type enqueueAnswer struct {
	us      int64
	marks   string
	holders []string
}

func readEnqueue(words []string) (a enqueueAnswer, err error) {
	if a.us, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return a, err
	}
	if len(words) < 2 || a.us < 0 || a.us > maxMicros {
		return a, errors.New("no answer to an enqueue")
	}
	a.marks, a.holders = words[1], words[2:]
	return a, nil
}

// give gives a job its result, and reports whether there was one for it.
func (a *enqueueAnswer) give(it *item) bool {
	if a.marks == "" {
		return false
	}
	mark := a.marks[0]
	it.result.Queue = it.queue
	switch {
	case mark == '.':
		it.result.ID = jobid.FromParts(a.us, it.low)
		a.us++
	case (mark == 'd' || mark == 'r') && len(a.holders) > 0 && it.unique != nil:
		it.result.Duplicate, it.result.Replaced = true, mark == 'r'
		it.result.ID, _ = jobid.FromText(a.holders[0])
		a.holders = a.holders[1:]
	default:
		return false
	}
	a.marks = a.marks[1:]
	return true
}

// over reports whether it had no more results than jobs.
func (a *enqueueAnswer) over() bool { return a.marks == "" && len(a.holders) == 0 }
