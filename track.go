package pawl

import (
	"context"
	"time"
)

// A track carries one round trip of a feed at a time. A feed has two: while
// Redis works on one, the other starts what it was given and gathers the next.
// All but calls and since belong to the feed's loop.
type track struct {
	feed    *feed
	lanes   [verbs]*lane
	leaser  *lane
	pending [verbs]*pendingCall
	leasing *leaseCall

	calls  []*call   // of the round trip under way; nil if none is
	since  time.Time // when it began
	wasOut bool      // it was sent during an outage
}

func newTrack(f *feed) *track {
	k := &f.q.keys
	t := &track{feed: f, leaser: newLane(k)}
	for v := range t.lanes {
		t.lanes[v] = newLane(k)
	}
	return t
}

// clear reports whether every call of the track has been answered.
func (t *track) clear() bool {
	for _, p := range t.pending {
		if p != nil {
			return false
		}
	}
	return t.leasing == nil
}

// unanswered is how many outcomes were sent, with no answer yet.
func (t *track) unanswered() (n int) {
	for _, p := range t.pending {
		if p != nil && (t.calls != nil || !p.call.first.IsZero()) {
			n += len(p.outs)
		}
	}
	return n
}

// beside is the other track.
func (f *feed) beside(t *track) *track {
	if t == f.tracks[0] {
		return f.tracks[1]
	}
	return f.tracks[0]
}

// free is the track to send next, or nil if none may be sent now. What an outage
// has left comes first. Two round trips are under way only if the second is
// worth its while: it would else take from the batches of both.
func (f *feed) free(out bool) *track {
	if time.Now().Before(f.resume) {
		return nil
	}
	f.resume = time.Time{}
	t := f.tracks[0]
	if t.calls != nil || t.clear() && f.tracks[1].calls == nil && !f.tracks[1].clear() {
		t = f.tracks[1]
	}
	if t.calls != nil || f.beside(t).calls != nil && (out || len(f.finished) < f.enough) {
		return nil
	}
	return t
}

// fly sends the calls of a track, and loop goes on: landed says that they are
// answered, or not.
func (f *feed) fly(t *track, calls []*call) {
	t.wasOut = f.worker.outages.has(f)
	f.mu.Lock()
	t.calls, t.since = calls, time.Now()
	f.mu.Unlock()
	f.worker.flights.start(t)
}

func (t *track) carry() {
	attempt(context.Background(), t.feed.q.client.rdb, t.calls...)
	t.feed.landed <- t
}
