package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlq/pawl/internal/redistest"
)

// Step is a fault of a schedule.
type Step struct {
	After  time.Duration // since the step before
	Kind   string        // one of kinds
	Target int           // which worker, of those there are
	For    time.Duration // how long it lasts, if it lasts
	Script string        // of a call: the K-th from then on
	K      int
	How    string // of a call: one of callFaults
}

func (s Step) String() string {
	switch s.Kind {
	case "call":
		return fmt.Sprintf("%s %d %s", s.Script, s.K, s.How)
	case "kill", "stop", "term":
		return fmt.Sprintf("%s worker %d", s.Kind, s.Target)
	}
	return s.Kind
}

// kinds are the faults and how often each comes, of a hundred.
var kinds = []struct {
	name   string
	weight int
}{
	{"call", 44}, {"kill", 10}, {"term", 4}, {"stop", 8}, {"redis", 5}, {"producer", 3}, {"clients", 5},
	{"flush", 6}, {"pause", 5}, {"hole", 4}, {"reset", 4}, {"squeeze", 2},
}

// scriptsHit are the calls that a proxy breaks; the first ones come often.
var scriptsHit = []string{"enqueue", "lease", "settle", "retry", "bury", "extend", "claim", "redrive", "cancel", "purge", "reschedule", "release"}

var callFaults = map[string]redistest.Fault{
	"drop": redistest.Drop, "no reply": redistest.RunDropReply, "reset": redistest.RunReset,
	"half a reply": redistest.HalfReply, "held": redistest.RunDropReplyAndHold, "late": redistest.Late,
	"stalled": redistest.Stall(300 * time.Millisecond),
}

var callFaultNames = []string{"drop", "no reply", "reset", "half a reply", "held", "late", "stalled"}

// NewPlan is the schedule of a seed: faults every few hundred ms for a time.
//
// The seed gives the schedule and the shapes of the jobs, and with them what is
// attempted and when. It cannot give what the kernel and Redis make of it: which
// process runs when, which call is the k-th, where in a handler a kill falls. So
// a seed that found something may have to be run more than once to find it again.
func NewPlan(seed uint64, workers int, visibility, window time.Duration) (plan []Step) {
	random := rand.New(rand.NewPCG(seed, 0))
	for left := window; ; {
		s := Step{After: time.Duration(50+random.IntN(300)) * time.Millisecond, Kind: pickKind(random), Target: random.IntN(workers)}
		switch s.Kind {
		case "call":
			s.Script = scriptsHit[min(random.IntN(len(scriptsHit)), random.IntN(len(scriptsHit)))]
			s.K, s.How = 1+random.IntN(4), callFaultNames[random.IntN(len(callFaultNames))]
			s.After /= 2
		case "stop":
			s.For = 2 * visibility
		case "redis", "squeeze":
			s.For = time.Duration(50+random.IntN(600)) * time.Millisecond
		case "pause":
			s.For = time.Duration(100+random.IntN(900)) * time.Millisecond
		case "hole":
			s.For = time.Duration(300+random.IntN(900)) * time.Millisecond
		}
		if left -= s.After; left < 0 {
			return plan
		}
		plan = append(plan, s)
	}
}

func pickKind(random *rand.Rand) string {
	n := random.IntN(100)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k.name
		}
	}
	return "call"
}
