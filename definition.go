package pawl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// definition is what is stored of a schedule as it was registered. Only Go reads it;
// docs/storage.md has the bytes.
type definition struct {
	spec    string // the text of a Spec
	missed  Missed
	overlap Overlap
	delay   int64  // ms, of each job
	record  string // the template of the jobs
}

const definitionVersion = 1

// errNewer is of a definition that a newer build has written.
var errNewer = errors.New("a newer version of pawl has registered it")

// text is the stored form: equal definitions have equal texts, or every deploy would
// change every schedule.
func (d definition) text() string {
	b := []byte{definitionVersion}
	b = binary.AppendUvarint(b, uint64(len(d.spec)))
	b = append(b, d.spec...)
	b = binary.AppendUvarint(b, uint64(d.missed))
	b = binary.AppendUvarint(b, uint64(d.overlap))
	b = binary.AppendUvarint(b, uint64(d.delay))
	return string(append(b, d.record...))
}

// parseDefinition takes any text. It does not look into the spec, which an older build
// or another machine, with fewer time zones, may not know, nor into the record.
func parseDefinition(text string) (definition, error) {
	b := []byte(text)
	if len(b) == 0 || b[0] != definitionVersion {
		if len(b) > 0 && b[0] > definitionVersion {
			return definition{}, errNewer
		}
		return definition{}, errors.New("its definition cannot be read")
	}
	b = b[1:]
	ok := true
	number := func(most uint64) uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > most {
			ok, b = false, nil
			return 0
		}
		b = b[size:]
		return n
	}
	var d definition
	n := number(uint64(len(b)))
	if !ok || n > uint64(len(b)) {
		return definition{}, errors.New("its definition cannot be read")
	}
	d.spec, b = string(b[:n]), b[n:]
	d.missed = Missed(number(uint64(MissedAll)))
	d.overlap = Overlap(number(uint64(OverlapSkip)))
	d.delay = int64(number(uint64(maxWait.Milliseconds())))
	if !ok {
		return definition{}, errors.New("its definition cannot be read")
	}
	d.record = string(b)
	return d, nil
}

// job makes one of its jobs, for a time in ms.
func (d *definition) job(q *queueState, id string, tick int64) (*item, error) {
	rec, err := record.Decode([]byte(d.record))
	if err != nil {
		return nil, fmt.Errorf("its job cannot be read: %w", err)
	}
	rec.Schedule, rec.Tick = id, tick
	it := &item{kind: rec.Kind, low: jobid.NewLow(), priority: rec.Priority, queue: q.name}
	if d.delay > 0 || rec.Priority > 0 {
		it.when, it.ms = 'd', d.delay
	}
	if u := rec.Unique; u != nil {
		it.unique = &Unique{Key: u.Key, Until: UniqueUntil(u.Until), For: u.For, OnDuplicate: OnDuplicate(u.OnDuplicate)}
	}
	it.record = rec.Append(nil)
	return it, nil
}

// scheduleState is where a schedule stands; see lua/lib/schedule.lua. Times are ms.
type scheduleState struct {
	rev                    string // of the definition
	anchor                 int64  // when it was first registered
	next                   int64  // of those that passed while it is paused the first
	last                   int64  // 0: none yet
	job                    string // that stood for the last one; "-": none yet
	fired, missed, skipped int64
	paused                 bool
}

func (s scheduleState) text() string {
	paused := 0
	if s.paused {
		paused = 1
	}
	return fmt.Sprintf("%s %d %d %d %s %d %d %d %d", s.rev, s.anchor, s.next, s.last, s.job, s.fired, s.missed, s.skipped, paused)
}

// parseScheduleState is as strict as the scripts.
func parseScheduleState(text string) (s scheduleState, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 9 {
		return s, false
	}
	ok = words[0] != "" && words[4] != ""
	number := func(i int) int64 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		ok = ok && err == nil && n >= 0 && words[i][0] != '+' && words[i][0] != '-' && len(words[i]) <= 15
		return n
	}
	s = scheduleState{rev: words[0], job: words[4], anchor: number(1), next: number(2), last: number(3),
		fired: number(5), missed: number(6), skipped: number(7), paused: words[8] == "1"}
	for _, r := range s.rev {
		ok = ok && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	ok = ok && (words[8] == "0" || s.paused) && !strings.ContainsAny(s.job, "\t\n\v\f\r")
	return s, ok
}
