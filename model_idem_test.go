//go:build !race

package pawl

import (
	"context"
	"fmt"
	"strings"
)

// The idempotency keys of the model: what a claim answers, and what the ends of a
// job make of its mark.

// modelMark is a key that is marked. expires is 0 while it has no TTL.
type modelMark struct {
	holder  string
	mode    byte // 'r' runs, 'd' done
	till    int64
	expires int64 // us
}

// keeps is whether a mark keeps other jobs from running.
func (m *modelQueue) keeps(k modelMark) bool {
	j := m.jobs[k.holder]
	if k.mode == 'd' {
		return m.ms() < k.till
	}
	return j != nil && j.place == modelLeased && j.score != 0
}

// claim answers for refs, each of a job that has a key.
func (m *modelQueue) claim(refs []modelRef) string {
	marks := m.fence(refs)
	holders := ""
	for i, r := range refs {
		if marks[i] != 'k' {
			continue
		}
		j := m.jobs[r.id]
		k, marked := m.idems[j.idem]
		switch {
		case marked && k.mode == 'r' && k.holder == j.id:
		case marked && m.keeps(k) && k.mode == 'd':
			marks[i] = 'd'
			holders += " " + k.holder + " 0"
		case marked && m.keeps(k):
			marks[i] = 'b'
			us, _, _ := strings.Cut(m.jobs[k.holder].token, "-")
			holders += fmt.Sprint(" ", k.holder, " ", max(0, m.us-modelNumber(us))/1000)
		default:
			m.idems[j.idem] = modelMark{holder: j.id, mode: 'r'}
		}
	}
	return string(marks) + holders
}

// unmark frees the key of a job that ends otherwise than done.
func (m *modelQueue) unmark(j *modelJob) {
	if k, marked := m.idems[j.idem]; marked && k.mode == 'r' && k.holder == j.id {
		delete(m.idems, j.idem)
	}
}

// markDone is for a job that was done: its key is done, unless it is another's.
func (m *modelQueue) markDone(j *modelJob) {
	if k, marked := m.idems[j.idem]; j.idem == "" || marked && k.holder != j.id && m.keeps(k) {
		return
	}
	till := m.ms() + 1 + j.idemWindow
	m.idems[j.idem] = modelMark{holder: j.id, mode: 'd', till: till, expires: till * 1000}
}

// places adds the keys that a job holds to a call, and says where they are.
func (x *modelMachine) places(keys []string, fixed int, j *modelJob) ([]string, string) {
	word := "0"
	if j != nil && j.key != "" {
		keys = append(keys, x.q.keys.unique(j.key))
		word = fmt.Sprint(len(keys) - fixed)
	}
	if j != nil && j.idem != "" {
		keys = append(keys, x.q.keys.idem(j.idem))
		word += fmt.Sprint(" ", len(keys)-fixed)
	}
	return keys, word
}

// window is for how long a settle makes a key done.
func (r *modelRef) window(held string) string {
	switch {
	case !strings.Contains(held, " "):
		return ""
	case r.counter == "done":
		return " 4000"
	default:
		return " 0"
	}
}

// claim asks for the keys of a few jobs, some of which others hold by now, and
// sometimes twice: it needs no lane.
func (x *modelMachine) claim() error {
	k := &x.q.keys
	c := &call{script: x.rig.scripts["claim"], keys: []string{k.leases, k.runs}}
	var refs []modelRef
	for range 1 + x.roll(3, "jobs") {
		j := x.job("job", modelLeased)
		if j == nil || j.idem == "" {
			continue
		}
		r := x.ref("claim", j)
		refs = append(refs, r)
		c.keys, c.args = append(c.keys, k.idem(j.idem)), append(c.args, r.id, r.token)
	}
	for range 1 + x.roll(2, "again") {
		want := x.m.claim(refs)
		if len(refs) == 0 {
			return nil
		}
		x.say("%v %s", c.args, want)
		attempt(context.Background(), x.rig.rdb, c)
		if got, err := c.text(); c.err != nil || err != nil || got != want {
			return fmt.Errorf("claim answered %q, %w, want %q", got, c.err, want)
		}
	}
	return nil
}

// checkMarks asks about every key.
func (x *modelMachine) checkMarks() error {
	c := &call{script: x.rig.scripts["marks"], keys: []string{x.q.keys.jobs, x.q.keys.held}}
	for key := range x.m.idems {
		c.keys = append(c.keys, x.q.keys.idem(key))
	}
	attempt(context.Background(), x.rig.rdb, c)
	parts, _ := c.reply.([]any)
	for _, text := range parts {
		if text != "" {
			return fmt.Errorf("marks: %s", text)
		}
	}
	if c.err == nil && len(parts) != len(x.m.idems) {
		return fmt.Errorf("marks answered %v", c.reply)
	}
	return c.err
}
