package pawltest

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// instead says what is in a queue that does not have what was asked for.
func (e *Env) instead(queue string, waiting []waitingJob) string {
	more := ""
	if s, err := e.Client.Queue(queue).Stats(context.Background()); err == nil && s.Running+s.Dead > 0 {
		more = fmt.Sprintf("; %d running, %d dead", s.Running, s.Dead)
	}
	if len(waiting) == 0 {
		if names, err := e.queues(context.Background()); err == nil && len(names) > 0 {
			more += fmt.Sprintf("; the queues that were used are %q", names)
		}
		return "nothing waits there" + more
	}
	return "there wait" + more + "\n" + list(waiting)
}

// maxListed bounds a failure's text.
const maxListed = 20

func list(jobs []waitingJob) string {
	var lines []string
	for i, job := range jobs {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("\tand %d more", len(jobs)-i))
			break
		}
		lines = append(lines, "\t"+describe(job))
	}
	return strings.Join(lines, "\n")
}

func describe(w waitingJob) string {
	s := w.Kind + " " + text(w.Payload)
	if w.due > 0 {
		s += fmt.Sprintf(", due in %v", w.due.Round(time.Millisecond))
	}
	if w.Attempt > 0 {
		s += fmt.Sprintf(", failed %d times, last with %q", w.Attempt, w.LastError)
	}
	return s
}

// text is a payload as it may be shown.
func text(payload []byte) string {
	const most = 500
	s := string(payload)
	if !utf8.ValidString(s) {
		s = fmt.Sprintf("%q", s)
	}
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
