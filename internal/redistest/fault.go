package redistest

import "time"

type faultKind int

const (
	pass faultKind = iota
	drop
	runDropReply
	runReset
	halfReply
	hold
	late
	stall
	delay
	trickle
	refuse
)

// Fault is what happens to one call on its way. After a fault that closes the
// connection nothing more is read from it: commands that the client sent
// behind the call are not forwarded. The replies of the commands before it
// are let through first.
type Fault struct {
	kind faultKind
	wait time.Duration
	text string // of a refusal
}

var (
	// Drop closes the connection without forwarding the call: it never runs.
	Drop = Fault{kind: drop}
	// RunDropReply lets the call run, swallows its reply and closes.
	RunDropReply = Fault{kind: runDropReply}
	// RunReset is RunDropReply, but the client sees a reset, not an EOF.
	RunReset = Fault{kind: runReset}
	// HalfReply lets the call run, passes half of its reply's bytes and closes.
	HalfReply = Fault{kind: halfReply}
	// RunDropReplyAndHold lets the call run and keeps the connection open, but
	// no reply ever comes over it again. Later commands on it still run.
	RunDropReplyAndHold = Fault{kind: hold}
	// Late closes the client's connection at once and keeps the call; it
	// arrives at Redis, over the connection it was sent on, when Release is
	// called.
	Late = Fault{kind: late}
)

// Stall holds the request for d, then forwards it, even if the client has left
// by then.
func Stall(d time.Duration) Fault { return Fault{kind: stall, wait: d} }

// Delay forwards the request at once and holds its reply for d.
func Delay(d time.Duration) Fault { return Fault{kind: delay, wait: d} }

// Trickle passes the reply one byte at a time, with a gap after each byte.
func Trickle(gap time.Duration) Fault { return Fault{kind: trickle, wait: gap} }

// Refuse answers with an error in place of the server, for which the call never
// runs: Refuse("LOADING Redis is loading").
func Refuse(text string) Fault { return Fault{kind: refuse, text: text} }

// call is one command on its way through the proxy.
type call struct {
	fault Fault
	raw   []byte        // kept for Late only
	fired func()        // tells that the fault has been carried out
	reply []byte        // of a Late call, set before answered is closed
	done  chan struct{} // of a Late call
}
