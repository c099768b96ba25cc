package chaos

import "github.com/pawlq/pawl"

// State is what is left in Redis at the end, as data, so that a checker needs no
// Redis.
type State struct {
	Stats    pawl.Stats
	Live     []string // ids of jobs that are ready, delayed or running
	Dead     []Tombstone
	Problems []string // what Queue.Check found
	Leftover []string // keys that a drained queue must not have
}

// Tombstone is a dead job.
type Tombstone struct {
	Job, Ref, Reason, Error string
	Attempt, MaxAttempts    int
	Crashes, Redrives       int
	DiedAt                  int64 // ms, by the server's clock
}
