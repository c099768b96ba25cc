package main

import (
	"context"
	"slices"
	"time"
)

// system is one of what is compared.
type system struct {
	name     string
	settings string // one line
	// slow to prepare, to start or to stop: a short run leaves it out unless it is
	// named.
	slow bool
	// can is what it has, of what workloads need.
	can []need
	// prepare readies the machine for it, once; an error leaves the system out.
	// cleanup is nil where there is nothing to clean up.
	prepare func(ctx context.Context, dir string) (cleanup func(), err error)
	// versions tells what was measured.
	versions func() map[string]string
	// store starts what it keeps its jobs in, new and empty.
	store func(ctx context.Context, redisArgs ...string) (*store, error)
	// open begins a session on a store; of several of one store each is a
	// producer and worker of its own.
	open func(ctx context.Context, at address) (session, error)
	// spawn is open in a process of its own.
	spawn func(ctx context.Context, at address) (session, error)
}

// need is what a workload needs of a system.
type need string

const (
	needsBulk  need = "a way to enqueue many jobs in one call"
	needsQueue need = "workers that wait for jobs"
	needsRedis need = "Redis"
)

func (s *system) meets(needs []need) bool {
	return !slices.ContainsFunc(needs, func(n need) bool { return !slices.Contains(s.can, n) })
}

// address is where a session finds its store.
type address struct {
	Redis    string `json:"redis"`    // host:port
	Postgres string `json:"postgres"` // a URL
}

// store is a server, or a database, of one run.
type store struct {
	at    address
	redis *redisServer // nil where it is not Redis
	close func()
}

// session is a system on a store.
type session interface {
	// enqueue returns when the last job of the load is confirmed.
	enqueue(ctx context.Context, l load) error
	// work starts a worker.
	work(ctx context.Context, w work) (worker, error)
	// state asks the system itself.
	state(ctx context.Context) (state, error)
	close(ctx context.Context) error
}

// worker runs jobs until it is stopped.
type worker interface {
	// wait returns when n distinct jobs have run to their end.
	wait(ctx context.Context, n int) error
	stop(ctx context.Context) (outcome, error)
}

// state is what a system says itself: how many jobs it has acknowledged, and how
// many it holds that are not, in whatever state.
type state struct {
	Done int `json:"done"`
	Left int `json:"left"`
	// Own: Done is of this session alone, not of all that share the store.
	Own bool `json:"own"`
}

// work is what a worker has to do.
type work struct {
	Slots int `json:"slots"`
	N     int `json:"n"` // numbers of jobs are below it
	// FailEvery has the first try of each such job fail; 0: none.
	FailEvery int  `json:"failEvery"`
	Late      bool `json:"late"` // record when each job started
}

func (w work) fails(number int) bool { return w.FailEvery > 0 && number%w.FailEvery == 0 }

// retryAfter is the wait after a failed try, the same in every system.
const retryAfter = 100 * time.Millisecond

// queueName is the one queue of every run.
const queueName = "bench"

// local is a worker in this process.
type local struct {
	*tally
	end func(context.Context) error
}

func (l *local) stop(ctx context.Context) (outcome, error) {
	err := l.end(ctx)
	return l.outcome(), err
}

// split shares slots out evenly among n workers.
func split(slots, n int) []int {
	var shares []int
	for i := range n {
		if share := slots/n + min(1, max(0, slots%n-i)); share > 0 {
			shares = append(shares, share)
		}
	}
	return shares
}
