//go:build !race

package pawl

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pawlq/pawl/internal/record"
)

// The model of a queue: what the design says, in plain Go values and without a
// thought for cost. It shares no code with the scripts. Times are the server's,
// in microseconds; scores and deadlines are milliseconds.
type modelQueue struct {
	us        int64 // the clock
	jobs      map[string]*modelJob
	order     []string // ids, oldest first
	uniques   map[string]modelUnique
	idems     map[string]modelMark
	last      int64 // microseconds of the newest id
	cursor    string
	waited    [4]int // leases in a row that took nothing from a source that had work
	lastFence int64
	wake      int
	counters  map[string]int64
	minute    int64            // that was noted last; 0: none
	minutes   map[int64]string // of the day: how the counters stood at its start
	paused    int64            // ms; 0: not paused
	maxBytes  int              // of records in one lease
	kept      map[string]modelKept
	keptMost  int
}

type modelPlace int

const (
	modelFresh modelPlace = iota
	modelDue
	modelPrio
	modelLeased // or given back: the deadline is 0
	modelParked // behind the holder of its key
	modelDead
	modelGone
)

type modelJob struct {
	id       string
	place    modelPlace
	streamed bool // its record is in jobs, not in held
	record   string
	score    int64 // due ms, rank, or deadline ms
	moved    int64 // a second score that a lease may have given it; 0: none

	token, before, flags string
	progress             string // as it stands in the run entry
	ran, unrun           bool   // leased: an earlier holder may have run it; given back: none has
	crashes              int
	tokens               []string // all that it was leased under

	key    string
	mode   byte
	window int64 // ms
	grave  string

	idem       string // its idempotency key
	idemWindow int64  // ms
	retain     int64  // ms
}

// modelUnique is a key that is held. expires is 0 while it has no TTL.
type modelUnique struct {
	holder  string
	mode    byte
	till    int64  // ms
	next    string // the job that waits behind the holder, or ""
	expires int64  // us
}

// modelItem is a job to enqueue.
type modelItem struct {
	low      uint64
	record   string
	when     byte // 'd', 'a', or 0
	ms       int64
	priority int
	key      string
	mode     byte
	window   int64
	change   byte // 'r' replaces who waits, 'l' also waits behind who runs, or 0

	idem       string
	idemWindow int64
	retain     int64 // ms
}

// modelRef is a job as one of its holders, present or past, names it, and what
// that one wants of it.
type modelRef struct {
	id, token string
	record    string      // retry, bury; progress: what is noted
	number    int64       // retry: delay; extend: visibility; bury: failed attempts; release: 1 if it was not run; finish: ms to keep it
	counter   string      // settle, finish, retry
	field     []byte      // retry: what its record says if it is over, and kept for
	retain    int64       // so many ms; 0: it is not
	then      []modelItem // finish: what follows
	words     []any       // finish: as the script is told of them
}

func newModelQueue(us int64, maxBytes int) *modelQueue {
	return &modelQueue{us: us, maxBytes: maxBytes, jobs: map[string]*modelJob{},
		uniques: map[string]modelUnique{}, idems: map[string]modelMark{}, kept: map[string]modelKept{}, counters: map[string]int64{}, minutes: map[int64]string{}}
}

func (m *modelQueue) ms() int64   { return m.us / 1000 }
func (m *modelQueue) msUp() int64 { return (m.us + 999) / 1000 }

func (j *modelJob) live() bool { return j != nil && j.place < modelDead }

// pass moves the clock. TTLs are durations: a clock that is set back makes them
// end earlier by it, as miniredis has it.
func (m *modelQueue) pass(us int64) {
	m.us += us
	for key, u := range m.uniques {
		if u.expires > 0 && us < 0 {
			u.expires += us
			m.uniques[key] = u
		}
		if u.expires > 0 && u.expires <= m.us {
			delete(m.uniques, key)
		}
	}
	for key, k := range m.idems {
		if k.expires > 0 && us < 0 {
			k.expires += us
			m.idems[key] = k
		}
		if k.expires > 0 && k.expires <= m.us {
			delete(m.idems, key)
		}
	}
}

// count notes how the counters stand if it is the first to count in a minute.
func (m *modelQueue) count(name string, n int64) {
	if n == 0 {
		return
	}
	minute := m.ms() / 60000
	if m.minute == 0 || minute > m.minute || m.minute >= minute+1440 {
		text := fmt.Sprint(minute)
		for _, c := range counterNames {
			text += fmt.Sprint(" ", m.counters[c])
		}
		m.minute, m.minutes[minute%1440] = minute, text
	}
	m.counters[name] += n
}

func (m *modelQueue) push(tokens int) { m.wake = min(m.wake+tokens, 2) }

// dueSoon is whether a time that was just set is near and the first of all.
func (m *modelQueue) dueSoon(at int64) bool {
	for _, j := range m.jobs {
		if j.place == modelDue && j.score < at {
			return false
		}
	}
	return at <= m.ms()+10000
}

// holder is the job that keeps others from taking a key, or "".
func (m *modelQueue) holder(key string) string {
	u, held := m.uniques[key]
	j := m.jobs[u.holder]
	switch {
	case !held:
		return ""
	case m.ms() < u.till:
		return u.holder
	case !j.live():
		return ""
	case u.mode == 's' && (j.place == modelLeased && !j.unrun || !j.streamed && modelHeadOf(j.record).started):
		return ""
	}
	return u.holder
}

// free ends the hold of a job that ends. The one that waits behind it has the key
// then, and may run.
func (m *modelQueue) free(j *modelJob) {
	u, held := m.uniques[j.key]
	switch {
	case held && u.next == j.id:
		u.next = ""
		m.uniques[j.key] = u
	case !held || u.holder != j.id:
	case u.next != "":
		next := m.jobs[u.next]
		at := max(m.ms(), modelHeadOf(next.record).due)
		next.place, next.score, next.record = modelDue, at, modelWithDue(next.record, at)
		m.uniques[j.key] = modelUnique{holder: next.id, mode: 'd', till: u.till}
		if at <= m.ms() || m.dueSoon(at) {
			m.push(1)
		}
	case u.till > m.ms():
		u.expires = u.till * 1000
		m.uniques[j.key] = u
	default:
		delete(m.uniques, j.key)
	}
}

func modelRank(priority int, ms int64) int64 { return int64(9-priority)*1e13 + ms }

func (m *modelQueue) cancel(id string) string {
	j := m.jobs[id]
	switch {
	case j == nil || j.place == modelGone:
		return "missing"
	case j.place == modelDead:
		return "dead"
	case j.place == modelLeased && j.score > m.ms():
		j.flags = "c"
		return "flagged"
	}
	if j.retain > 0 {
		field := (&record.End{State: "cancelled", At: m.ms()}).Field()
		m.keep(18, modelKept{id, modelWithField(j.record, field), m.ms() + j.retain})
	}
	m.end(j, modelGone)
	m.count("cancelled", 1)
	return "gone"
}

// end takes a job out of the living.
func (m *modelQueue) end(j *modelJob, to modelPlace) {
	m.free(j)
	m.unmark(j)
	j.place, j.score, j.flags = to, 0, ""
	j.unlease()
}

// unlease forgets what its run entry knew of a job.
func (j *modelJob) unlease() {
	j.token, j.before, j.progress, j.crashes, j.ran, j.unrun = "", "", "", 0, false, false
}

// redrive answers for one job. record is what it is to be from now on; grave,
// where it was found dead.
func (m *modelQueue) redrive(id, grave, record string) string {
	j := m.jobs[id]
	if j == nil || j.place != modelDead {
		return "missing"
	}
	if j.grave != grave {
		return "changed"
	}
	if holder := m.holder(j.key); j.key != "" {
		if holder != "" && holder != id {
			return holder
		}
		m.uniques[j.key] = modelUnique{holder: id, mode: j.mode, till: j.windowEnd()}
	}
	j.place, j.streamed, j.score, j.record = modelDue, false, m.ms(), modelWithDue(record, m.ms())
	if p := modelHeadOf(record).priority; p > 0 {
		j.place, j.score = modelPrio, modelRank(p, m.ms())
	}
	m.count("redriven", 1)
	return "ok"
}

func (j *modelJob) windowEnd() int64 {
	if j.window == 0 {
		return 0
	}
	us, _, _ := strings.Cut(j.id, "-")
	return (modelNumber(us)+999)/1000 + j.window
}

// modelHead is what scripts may know of a record.
type modelHead struct {
	long, started          bool
	priority, crashes, max int
	visibility, due        int64
}

func modelHeadOf(record string) (h modelHead) {
	b := []byte(record)
	if len(b) < 2 || b[0] != 1 {
		return h
	}
	h.priority, h.started = min(int(b[1]&15), 9), b[1]&16 != 0
	if h.long = b[1]&32 != 0 && len(b) >= 14; h.long {
		h.crashes, h.max = int(b[2]), int(b[3])
		h.visibility = int64(binary.BigEndian.Uint32(b[4:]))
		h.due = int64(binary.BigEndian.Uint64(b[6:]) & (1<<48 - 1))
	}
	return h
}

// modelStarted is the record of a job that an earlier holder has run.
func modelStarted(record string) string {
	if !modelHeadOf(record).long {
		return record
	}
	return record[:1] + string([]byte{record[1] | 16}) + record[2:]
}

// modelWithSince is the record with the time from which ExpireIn counts, behind its kind.
func modelWithSince(record string, ms int64) string {
	if !modelHeadOf(record).long {
		return record
	}
	size, n := binary.Uvarint([]byte(record[14:]))
	at := 14 + n + int(size)
	if n <= 0 || at >= len(record) {
		return record
	}
	since := binary.AppendUvarint(nil, uint64(ms))
	return record[:at] + string(append([]byte{7, byte(len(since))}, since...)) + record[at:]
}

// withDue is the record with its due time; one without a place for it stays.
func modelWithDue(record string, ms int64) string {
	if !modelHeadOf(record).long {
		return record
	}
	due := binary.BigEndian.AppendUint64(nil, uint64(ms))
	return record[:8] + string(due[2:]) + record[14:]
}
