package chaos

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// inject carries out one step. What lasts ends by itself later, but an outage of
// Redis, over which it waits.
func (r *runner) inject(ctx context.Context, s Step) {
	r.count(s.Kind)
	victim := r.workers[s.Target%len(r.workers)]
	switch s.Kind {
	case "call":
		r.hit(s)
	case "kill":
		victim.signal(syscall.SIGKILL) // its slot writes it down
	case "term": // a deploy
		began := time.Now()
		r.fault(s.Kind, victim.signal(syscall.SIGTERM), began)
	case "producer":
		r.producer.signal(syscall.SIGKILL)
	case "stop":
		r.lasting(ctx, s, victim.signal(syscall.SIGSTOP), func() { victim.signal(syscall.SIGCONT) })
	case "redis":
		began := time.Now()
		r.server.Kill()
		_ = wait(ctx, s.For)
		cut, err := cutOpenTransaction(r.server.Dir())
		if err != nil {
			r.fail("append-only file: %v", err)
		}
		if cut {
			r.count("redis torn")
		}
		r.server.Restart()
		r.fault(s.Kind, "", began)
	case "clients":
		r.admin(ctx, s, "CLIENT", "KILL", "TYPE", "normal")
	case "flush":
		r.admin(ctx, s, "SCRIPT", "FLUSH")
	case "pause":
		began := time.Now()
		r.admin(ctx, s, "CLIENT", "PAUSE", s.For.Milliseconds(), "WRITE")
		r.fault(s.Kind, "", began.Add(-s.For)) // it lasts from now on
	case "hole":
		r.proxy.Blackhole(true)
		r.lasting(ctx, s, "", func() { r.proxy.Blackhole(false) })
	case "reset":
		r.proxy.CutAll()
		r.fault(s.Kind, "", time.Now())
	case "release":
		r.proxy.Release()
	case "squeeze":
		r.admin(ctx, s, "CONFIG", "SET", "maxmemory", max(1, r.memory(ctx)-100_000))
		r.lasting(ctx, s, "", func() { r.admin(context.Background(), s, "CONFIG", "SET", "maxmemory", 0) })
	default:
		r.fail("no fault of this kind: %q", s.Kind)
	}
}

// hit breaks a call that is yet to come; it is written down when it did.
func (r *runner) hit(s Step) {
	fired := r.proxy.On(s.Script, r.proxy.Calls(s.Script)+s.K, callFaults[s.How])
	r.lastings.Go(func() {
		select {
		case <-fired:
			// A reply that never comes ends with the client's read timeout.
			r.out.Write(Event{Type: OK, Op: Fault, Class: s.String(), Delay: patience})
			r.count("fired")
		case <-r.over:
		}
	})
}

// lasting ends a fault when its time is over, or that of all faults, and writes
// it down with the time it took.
func (r *runner) lasting(ctx context.Context, s Step, ref string, end func()) {
	began := time.Now()
	r.lastings.Go(func() {
		_ = wait(ctx, s.For)
		end()
		r.fault(s.Kind, ref, began)
	})
}

func (r *runner) fault(class, ref string, began time.Time) {
	r.out.Write(Event{At: began.UnixMilli(), Type: OK, Op: Fault, Class: class, Ref: ref, Delay: time.Since(began).Milliseconds()})
}

// admin sends a command past the proxy. Redis may be away, which is a fault too.
func (r *runner) admin(ctx context.Context, s Step, args ...any) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = r.direct.Do(ctx, args...).Err()
	if s.Kind != "squeeze" {
		r.fault(s.Kind, "", time.Now())
	}
}

func (r *runner) memory(ctx context.Context) int64 {
	text, err := r.direct.Info(ctx, "memory").Result()
	if err != nil {
		return 1 << 40 // no squeeze
	}
	_, text, _ = strings.Cut(text, "used_memory:")
	text, _, _ = strings.Cut(text, "\r")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
