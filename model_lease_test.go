//go:build !race

package pawl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// modelLease is a lease call: what was asked and, once answered, what it gave.
type modelLease struct {
	n                int
	visibility       int64
	nonce            string
	max              int // crashes
	suspect, expired bool
	token, next      string
	ids              []string
	marks            map[string]string
	picks            []modelPick
	sources          [4][]*modelJob
	passed, suspects int
	either           []string // taken, with no telling from which source
}

// modelPick is a job of a lease's answer.
type modelPick struct{ id, record, crashes, flags string }

const (
	fromExpired = iota
	fromDue
	fromPrio
	fromFresh
)

func modelNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1 << 62
	}
	return n
}

// modelParseLease reads the parts of an answer.
func modelParseLease(reply any) (now int64, next, token string, picks []modelPick, err error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) < 3 || len(parts)%4 != 3 {
		return 0, "", "", nil, fmt.Errorf("lease answered %v", reply)
	}
	text := func(i int) string { s, _ := parts[i].(string); return s }
	for i := 3; i < len(parts); i += 4 {
		picks = append(picks, modelPick{text(i), text(i + 1), text(i + 2), text(i + 3)})
	}
	return modelNumber(text(0)), text(1), text(2), picks, nil
}

// lease judges a lease: any choice is right that takes from each source the
// first ones, at most n and one suspect in all, and leaves behind nothing that
// it had room for. after is the state that it left.
func (m *modelQueue) lease(l *modelLease, reply any, after modelState) error {
	now, next, token, picks, err := modelParseLease(reply)
	if err != nil {
		return err
	}
	fence := max(m.us, m.lastFence+1)
	if want := fmt.Sprintf("%d-%s", fence, l.nonce); token != want {
		return fmt.Errorf("lease: token %s, want %s", token, want)
	}
	if now != m.ms() {
		return fmt.Errorf("lease: now is %d, want %d", now, m.ms())
	}
	l.token, l.next, l.picks, l.marks = token, next, picks, map[string]string{}
	if m.paused > m.ms() {
		if want := modelText(m.paused - m.ms()); next != want || len(picks) > 0 {
			return fmt.Errorf("lease: gave %q and %s ms to the next work of a paused queue, want %s", picks, next, want)
		}
		return nil
	}
	if err := m.promote(l, after); err != nil {
		return err
	}
	m.gather(l)
	if err := m.judge(l); err != nil {
		return err
	}
	m.take(l)
	if len(picks) > 0 {
		m.lastFence = fence
		m.count("started", int64(len(picks)))
	}
	if want := m.nextWork(l.full(m)); next != want {
		return fmt.Errorf("lease: next work in %s ms, want %s", next, want)
	}
	return nil
}

// promote moves due jobs that have a priority to the priorities: all that the
// call looked at, which are the first n at least, or the first one where large
// records end the look.
func (m *modelQueue) promote(l *modelLease, after modelState) error {
	var due []*modelJob
	for _, j := range m.jobs {
		if j.place == modelDue && j.score <= m.ms() {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, modelByScore)
	for i, j := range due {
		_, still := after["due "+j.id]
		p := modelHeadOf(j.record).priority
		looked := i == 0 || i < l.n && m.maxBytes > 1000
		switch {
		case p == 0:
		case looked && still:
			return fmt.Errorf("lease: %s is due and was not ranked", j.id)
		case !looked && l.took(j):
			l.either = append(l.either, j.id) // from due, or ranked at first
		case !still:
			j.place, j.score = modelPrio, modelRank(p, j.score)
		}
	}
	return nil
}

func modelByScore(a, b *modelJob) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.id, b.id))
}

// gather fills the lease's sources.
func (m *modelQueue) gather(l *modelLease) {
	for _, id := range m.order {
		i, j := -1, m.jobs[id]
		switch {
		case j.place == modelLeased && l.expired && j.score <= m.ms():
			i = fromExpired
		case j.place == modelDue && j.score <= m.ms():
			i = fromDue
		case j.place == modelPrio:
			i = fromPrio
		case j.place == modelFresh:
			i = fromFresh
		}
		if i >= 0 {
			l.sources[i] = append(l.sources[i], j)
		}
	}
	for i := range l.sources {
		slices.SortFunc(l.sources[i], modelByScore)
	}
}

// outcome is a job's crashes if it is leased now, and whether they make it a
// suspect: one more would be its last.
func (l *modelLease) outcome(j *modelJob) (crashes int, suspect bool) {
	h := modelHeadOf(j.record)
	crashes = max(j.crashes, h.crashes)
	if j.place == modelLeased && j.score != 0 {
		crashes++
	}
	most := l.max
	if h.max > 0 {
		most = h.max
	}
	return crashes, crashes >= 1 && crashes >= most-1
}

func (l *modelLease) full(m *modelQueue) bool {
	bytes := 0
	for _, p := range l.picks {
		bytes += len(p.record)
	}
	return len(l.picks) >= l.n || len(l.picks) > 0 && bytes >= m.maxBytes
}

func (m *modelQueue) judge(l *modelLease) error {
	picked := map[string]modelPick{}
	for _, p := range l.picks {
		if _, twice := picked[p.id]; twice {
			return fmt.Errorf("lease: %s was given twice", p.id)
		}
		picked[p.id] = p
	}
	if len(picked) > l.n {
		return fmt.Errorf("lease: %d jobs, asked for %d", len(picked), l.n)
	}
	for i, source := range l.sources {
		room := !l.full(m) // for what comes after the job
		for k := len(source) - 1; k >= 0; k-- {
			j := source[k]
			crashes, suspect := l.outcome(j)
			p, taken := picked[j.id]
			switch {
			case taken:
				room = room || !slices.Contains(l.either, j.id)
				delete(picked, j.id)
				flags := j.flags
				if j.place == modelLeased && j.score != 0 {
					l.marks[j.id] = "x"
				}
				if suspect {
					l.suspects++
					l.marks[j.id] += "s"
				}
				if want := (modelPick{j.id, j.record, fmt.Sprint(crashes), flags + l.marks[j.id] + j.progress}); p != want {
					return fmt.Errorf("lease: gave %q, want %q", p, want)
				}
			case suspect && room:
				l.passed++
			case room:
				return fmt.Errorf("lease: source %d: %s was passed over", i, j.id)
			}
		}
		if err := m.turns(l, i); err != nil {
			return err
		}
	}
	for id := range picked {
		return fmt.Errorf("lease: %s was not to be had", id)
	}
	allowed := 0
	if l.suspect {
		allowed = 1
	}
	if l.suspects > allowed || l.passed > 0 && l.suspects < allowed {
		return fmt.Errorf("lease: %d suspects given, %d passed over, %d allowed", l.suspects, l.passed, allowed)
	}
	return nil
}

// turns sees that no source that has work waits for more than four calls.
func (m *modelQueue) turns(l *modelLease, i int) error {
	source := l.sources[i]
	waits := len(source) > 0 && len(l.either) == 0 && !slices.ContainsFunc(source, l.took)
	if waits {
		_, suspect := l.outcome(source[0])
		waits = !suspect
	}
	if m.waited[i]++; !waits {
		m.waited[i] = 0
	}
	if m.waited[i] >= 4 {
		return fmt.Errorf("lease: source %d gave nothing in %d calls", i, m.waited[i])
	}
	return nil
}

func (l *modelLease) took(j *modelJob) bool {
	return slices.ContainsFunc(l.picks, func(p modelPick) bool { return p.id == j.id })
}

// take makes the picks leased jobs.
func (m *modelQueue) take(l *modelLease) {
	for _, p := range l.picks {
		j := m.jobs[p.id]
		l.ids = append(l.ids, p.id)
		crashes, _ := l.outcome(j)
		if strings.Contains(l.marks[p.id], "x") {
			j.before = j.token
			m.count("crashed", 1)
		}
		if j.place == modelFresh {
			m.cursor = j.id
		}
		j.ran, j.unrun = j.place == modelLeased && !j.unrun, false
		visibility := l.visibility
		if v := modelHeadOf(j.record).visibility; v > 0 {
			visibility = v
		}
		j.place, j.crashes, j.token, j.score = modelLeased, crashes, l.token, m.msUp()+visibility
		j.tokens = append(j.tokens, l.token)
	}
	for _, j := range append(l.sources[fromExpired], l.sources[fromDue]...) {
		if _, suspect := l.outcome(j); suspect && j.score != 0 && !l.took(j) {
			j.moved = m.ms() // it may have been sent to the back
		}
	}
	if len(l.picks) > 0 && m.cursor == "" {
		m.cursor = "0-0"
	}
}

// nextWork is the ms to the first moment at which there may be more to lease.
func (m *modelQueue) nextWork(full bool) string {
	next := int64(-1)
	for _, j := range m.jobs {
		waits := j.place == modelDue || j.place == modelLeased && !full
		if waits && j.score > m.ms() && (next < 0 || j.score-m.ms() < next) {
			next = j.score - m.ms()
		}
	}
	return fmt.Sprint(next)
}

// leaseAgain is the answer to a lease that is sent again: the jobs that it gave
// and that are still leased under its token, with the crashes of then.
func (m *modelQueue) leaseAgain(l *modelLease, reply any) error {
	now, next, token, picks, err := modelParseLease(reply)
	var want []modelPick
	for i, id := range l.ids {
		if j := m.jobs[id]; j.place == modelLeased && j.token == l.token {
			want = append(want, modelPick{id, j.record, l.picks[i].crashes, j.flags + l.marks[id] + j.progress})
		}
	}
	if err == nil && (now != m.ms() || next != l.next || token != l.token || !slices.Equal(picks, want)) {
		err = fmt.Errorf("lease again: answered %d %s %s %q, want %d %s %s %q", now, next, token, picks, m.ms(), l.next, l.token, want)
	}
	return err
}
