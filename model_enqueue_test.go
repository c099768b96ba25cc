//go:build !race

package pawl

import (
	"fmt"

	"github.com/pawlq/pawl/internal/jobid"
)

// wait is when an item is due, and whether that is not at once.
func (m *modelQueue) wait(it modelItem) (at int64, later bool) {
	at = m.msUp() + it.ms
	if it.when == 'a' {
		at = it.ms
	}
	return at, at > m.ms() && (it.when == 'a' || it.when == 'd' && it.ms > 0)
}

// modelMade is the ms at which a job was enqueued.
func modelMade(j *modelJob) int64 {
	id, _ := jobid.FromText(j.id)
	return jobid.Micros(id) / 1000
}

// met is what an item that replaces finds under its key: the job to be replaced, or
// whether the holder runs, with nobody behind it.
func (m *modelQueue) met(key, holder string) (target *modelJob, runs bool) {
	j := m.jobs[holder]
	switch {
	case m.uniques[key].next != "":
		return m.jobs[m.uniques[key].next], false
	case !j.live():
		return nil, false // only its window is left
	case j.place == modelLeased && (j.score != 0 || j.flags == "c"):
		return nil, true
	}
	return j, false
}

// modelCall is what an enqueue does beside the jobs that it makes.
type modelCall struct {
	ready   int
	nearest int64 // due ms; 0: none
}

func (c *modelCall) due(at int64) {
	if c.nearest == 0 || at < c.nearest {
		c.nearest = at
	}
}

func (m *modelQueue) enqueue(items []modelItem) string {
	us := max(m.us, m.last+1)
	answer, holders := fmt.Sprint(us, " "), ""
	newest, made := map[string]int{}, map[*modelJob]bool{}
	for i, it := range items {
		if it.key != "" && it.change != 0 {
			newest[it.key] = i
		}
	}
	c := &modelCall{}
	for i, it := range items {
		holder, parked := "", false
		if it.key != "" {
			holder = m.holder(it.key)
		}
		if holder != "" {
			var target *modelJob
			if it.change != 0 {
				target, parked = m.met(it.key, holder)
				parked = parked && it.change == 'l'
			}
			mark := "d"
			if target != nil {
				mark, holder = "r", target.id
				m.renew(it, us, target.place == modelParked)
				if !made[target] {
					m.replace(target, items[newest[it.key]], c) // the last one of the call
					made[target] = true
				}
			}
			if !parked {
				answer, holders = answer+mark, holders+" "+holder
				m.count("duplicate", 1)
				continue
			}
		}
		j := &modelJob{id: fmt.Sprintf("%d-%d", us, it.low), key: it.key}
		switch u := m.uniques[it.key]; {
		case parked:
			u.next, u.mode = j.id, 'd'
			m.uniques[it.key] = u
			m.renew(it, us, true)
		case it.key != "":
			m.uniques[it.key] = modelUnique{holder: j.id, mode: it.mode}
			m.renew(it, us, false)
		}
		if last, ok := newest[it.key]; ok && it.key != "" && last > i {
			it = items[last] // replaced before it is written
		}
		m.add(j, it, parked, c)
		made[j] = true
		m.last = us
		answer += "."
		us++
	}
	if c.nearest > 0 && m.dueSoon(c.nearest) {
		c.ready++
	}
	m.push(c.ready)
	return answer + holders
}

// renew has the window of a key count from an item, and its holder hold it as that
// says; behind is whether the item waits behind the holder.
func (m *modelQueue) renew(it modelItem, us int64, behind bool) {
	u := m.uniques[it.key]
	if it.window > 0 {
		u.till = max(u.till, (us+999)/1000+it.window)
	}
	if !behind {
		u.mode = it.mode
	}
	m.uniques[it.key] = u
}

func (m *modelQueue) add(j *modelJob, it modelItem, parked bool, c *modelCall) {
	j.record, j.mode, j.window = it.record, it.mode, it.window
	j.idem, j.idemWindow, j.retain = it.idem, it.idemWindow, it.retain
	at, later := m.wait(it)
	switch {
	case parked:
		if !later {
			at = m.ms()
		}
		j.place, j.score, j.record = modelParked, parkedFrom+m.ms(), modelWithDue(j.record, at)
	case later:
		j.place, j.score, j.record = modelDue, at, modelWithDue(j.record, at)
		c.due(at)
	case it.priority > 0:
		j.place, j.score, j.record = modelPrio, modelRank(it.priority, m.ms()), modelWithDue(j.record, m.ms())
		c.ready++
	default:
		j.streamed = true
		c.ready++
	}
	m.jobs[j.id], m.order = j, append(m.order, j.id)
	m.count("enqueued", 1)
}

// replace makes another job of one that waits. One that was ready, and is, keeps the
// time from which it counts as ready.
func (m *modelQueue) replace(j *modelJob, it modelItem, c *modelCall) {
	at, later := m.wait(it)
	if !later {
		at = m.ms()
		if j.place != modelParked && (j.place != modelDue || j.score <= m.ms()) {
			since := modelHeadOf(j.record).due
			if j.streamed || since == 0 {
				since = modelMade(j)
			}
			at = min(at, since)
		}
	}
	j.record, j.mode, j.window = modelWithSince(modelWithDue(it.record, at), m.ms()), it.mode, it.window
	j.idem, j.idemWindow, j.retain = it.idem, it.idemWindow, it.retain
	if j.place == modelParked {
		return
	}
	j.place, j.score, j.streamed, j.flags = modelDue, at, false, ""
	j.unlease()
	switch {
	case later:
		c.due(at)
	case it.priority > 0:
		j.place, j.score = modelPrio, modelRank(it.priority, at)
		c.ready++
	default:
		c.ready++
	}
}
