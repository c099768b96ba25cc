//go:build !race

package pawl

// The verbs of a holder. Each takes refs as one call has them and returns a
// letter for each.

// fence tells who of the refs holds its lease: 'k', 'c' if the job is to be
// cancelled, 'l' for the others. One that held the lease before and was thought
// to have crashed has shown that it lives, which takes the crash back, unless
// the holder itself speaks in the same call.
func (m *modelQueue) fence(refs []modelRef) []byte {
	marks := make([]byte, len(refs))
	met := map[string]bool{}
	for i, r := range refs {
		marks[i] = 'l'
		j := m.jobs[r.id]
		if j == nil || j.place != modelLeased || j.score == 0 || j.token != r.token || met[r.id] {
			continue
		}
		met[r.id] = true
		marks[i] = 'k'
		if j.flags == "c" {
			marks[i] = 'c'
		}
	}
	for _, r := range refs {
		j := m.jobs[r.id]
		if j != nil && j.place == modelLeased && !met[r.id] && j.before == r.token && j.before != "" && j.crashes > 0 {
			j.crashes--
			j.before = ""
		}
	}
	return marks
}

// settle is finish, too: that is of refs with a record to keep.
func (m *modelQueue) settle(refs []modelRef) string {
	marks := m.fence(refs)
	var kept []modelKept
	var then []modelItem
	passed := map[string]bool{} // keys that the end of their holder gave to another
	for i, r := range refs {
		if marks[i] == 'c' && r.counter != "discarded" {
			marks[i] = 'k' // done is done
		}
		if marks[i] == 'k' {
			j := m.jobs[r.id]
			if u := m.uniques[j.key]; u.holder == j.id && u.next != "" {
				passed[j.key] = true
			}
			then = append(then, r.then...)
			if m.end(j, modelGone); r.counter == "done" {
				m.markDone(j)
			}
			if r.record != "" && r.number > 0 {
				kept = append(kept, modelKept{r.id, r.record, m.ms() + r.number})
			}
			if m.count(r.counter, 1); r.counter == "skipped" {
				m.count("done", 1)
			}
		}
	}
	if len(kept) > 0 {
		m.keep(2*len(kept)+16, kept...)
	}
	if len(then) == 0 {
		return string(marks)
	}
	for i := range then {
		if passed[then[i].key] {
			then[i].change = 0 // who waits behind has the key, and keeps it
		}
	}
	return string(marks) + " " + m.enqueue(then)
}

func (m *modelQueue) retry(refs []modelRef) string {
	marks := m.fence(refs)
	nearest, over, kept := int64(0), []*modelJob{}, []modelKept{}
	for i, r := range refs {
		if marks[i] != 'k' {
			continue
		}
		j, at := m.jobs[r.id], m.msUp()+r.number
		m.unmark(j)
		if u := m.uniques[j.key]; j.key != "" && u.holder == j.id && u.next != "" {
			marks[i] = 's' // a newer one waits behind it
			over = append(over, j)
			if r.retain > 0 {
				kept = append(kept, modelKept{r.id, modelWithField(r.record, r.field), m.ms() + r.retain})
			}
			m.count("discarded", 1)
			if r.counter == "retried" {
				m.count("failed", 1)
			}
			continue
		}
		j.place, j.streamed, j.score, j.record = modelDue, false, at, modelWithDue(r.record, at)
		if j.ran {
			j.record = modelStarted(j.record)
		}
		j.unlease()
		m.count(r.counter, 1)
		if r.counter == "retried" {
			m.count("failed", 1)
		}
		if nearest == 0 || at < nearest {
			nearest = at
		}
	}
	if nearest > 0 && m.dueSoon(nearest) {
		m.push(1)
	}
	for _, j := range over {
		m.end(j, modelGone)
	}
	if len(kept) > 0 {
		m.keep(2*len(kept)+16, kept...)
	}
	return string(marks)
}

func (m *modelQueue) bury(refs []modelRef) string {
	marks := m.fence(refs)
	for i, r := range refs {
		if marks[i] != 'k' {
			continue
		}
		j := m.jobs[r.id]
		m.end(j, modelDead)
		j.record, j.grave = r.record, ""
		m.count("dead", 1)
		m.count("failed", r.number)
	}
	return string(marks)
}

func (m *modelQueue) release(refs []modelRef) string {
	marks := m.fence(refs)
	given := 0
	for i, r := range refs {
		if marks[i] != 'l' {
			j := m.jobs[r.id]
			j.score = 0
			j.unrun = marks[i] == 'k' && r.number == 1 && !j.ran
			m.count("released", 1)
			given++
		}
	}
	m.push(given)
	return string(marks)
}

func (m *modelQueue) extend(refs []modelRef) string {
	marks := m.fence(refs)
	for i, r := range refs {
		if marks[i] != 'l' {
			m.jobs[r.id].score = m.msUp() + r.number
		}
	}
	return string(marks)
}

func (m *modelQueue) progress(refs []modelRef) string {
	marks := m.fence(refs)
	for i, r := range refs {
		if marks[i] != 'l' {
			m.jobs[r.id].progress = r.record
		}
	}
	return string(marks)
}
