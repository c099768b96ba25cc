package pawl

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	earPatience = 30 * time.Second // of silence, before it asks whether the line is dead
	earDeaf     = time.Minute      // after SUBSCRIBE was refused
)

// An ear hears which jobs have ended, for all lobbies of a Client, over one connection,
// while any of them is open. What it does not hear, the lobbies find by looking: nothing
// depends on it but how soon.
type ear struct {
	client *Client

	mu     sync.Mutex
	seats  map[string]*seat // by channel
	tended bool             // tend is there
	stir   chan struct{}    // something for tend to do
	deaf   time.Time        // until when SUBSCRIBE is not tried again
	warned bool
}

// A seat is a lobby that listens, from its opening to its end.
type seat struct{ lobby *lobby }

func (e *ear) join(l *lobby) *seat {
	s := &seat{l}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seats == nil {
		e.seats = map[string]*seat{}
	}
	e.seats[l.q.keys.ended()] = s
	if !e.tended {
		e.tended, e.stir = true, make(chan struct{}, 1)
		go e.tend(e.stir)
	}
	nudge(e.stir)
	return s
}

func (e *ear) leave(s *seat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if channel := s.lobby.q.keys.ended(); e.seats[channel] == s {
		delete(e.seats, channel)
		nudge(e.stir)
	}
}

// wanted is who listens, nil if nobody does any more: then tend ends.
func (e *ear) wanted() (seats map[string]*seat, deaf time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tended = len(e.seats) > 0; !e.tended {
		return nil, 0
	}
	return maps.Clone(e.seats), time.Until(e.deaf)
}

// tend keeps a line subscribed to what is wanted.
func (e *ear) tend(stir <-chan struct{}) {
	var l *line
	defer func() { l.close() }()
	for {
		seats, deaf := e.wanted()
		if seats == nil {
			return
		}
		var dead <-chan struct{}
		var again <-chan time.Time
		if deaf > 0 {
			l.close()
			l, again = nil, time.After(deaf)
		} else {
			if l == nil {
				l = newLine(e)
			}
			l.match(seats)
			dead = l.dead
		}
		select {
		case <-stir:
		case <-again:
		case <-dead:
			l.close()
			l = nil
		}
	}
}

// lobby is who listens to a channel, or nil.
func (e *ear) lobby(channel string) *lobby {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.seats[channel]; s != nil {
		return s.lobby
	}
	return nil
}

func (e *ear) channels() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.seats))
}

// lose tells all lobbies that nothing is heard.
func (e *ear) lose() {
	e.mu.Lock()
	seats := maps.Clone(e.seats)
	e.mu.Unlock()
	for _, s := range seats {
		s.lobby.tune(false)
	}
}

// refused gives up for a while.
func (e *ear) refused(err error) {
	e.mu.Lock()
	e.deaf = time.Now().Add(earDeaf)
	warned := e.warned
	e.warned = true
	e.mu.Unlock()
	if !warned && !errors.Is(err, redis.ErrClosed) {
		e.client.log.Warn("pawl: SUBSCRIBE is refused, so that Wait asks again and again: see docs/security.md", "error", err)
	}
}

// A line is the ear's connection. All but listen is tend's.
type line struct {
	ear    *ear
	sub    *redis.PubSub
	ctx    context.Context
	cancel context.CancelFunc
	has    map[string]*seat
	dead   chan struct{} // closed when it hears nothing any more
}

func newLine(e *ear) *line {
	l := &line{ear: e, has: map[string]*seat{}, dead: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.sub = e.client.rdb.Subscribe(l.ctx) // to nothing yet, so that it does not connect
	return l
}

func (l *line) close() {
	if l != nil {
		l.cancel()
		_ = l.sub.Close()
	}
}

// match subscribes to what is wanted and not there. A lobby that was opened anew is
// subscribed anew, since the answer tells it that it hears. An error leaves it to
// listen, which connects again and subscribes to all.
func (l *line) match(seats map[string]*seat) {
	var more, less []string
	for channel, s := range seats {
		if l.has[channel] != s {
			more = append(more, channel)
		}
	}
	for channel := range l.has {
		if seats[channel] == nil {
			less = append(less, channel)
		}
	}
	first := len(l.has) == 0
	l.has = seats
	if len(more) > 0 {
		_ = l.sub.Subscribe(l.ctx, more...)
	}
	if len(less) > 0 {
		_ = l.sub.Unsubscribe(l.ctx, less...)
	}
	if first {
		go l.listen()
	}
}

// listen hands on what is heard. go-redis connects again by itself.
func (l *line) listen() {
	defer close(l.dead)
	silent := false
	for failed := 0; ; {
		heard, err := l.sub.ReceiveTimeout(l.ctx, earPatience)
		if l.ctx.Err() != nil {
			return
		}
		if err == nil {
			silent, failed = false, 0
			l.ear.hear(heard)
			continue
		}
		if forGood(err) != nil {
			l.ear.lose()
			l.ear.refused(err)
			return
		}
		var waited net.Error
		if timeout := errors.As(err, &waited) && waited.Timeout(); timeout && !silent {
			silent = true
			_ = l.sub.Subscribe(l.ctx, l.ear.channels()...) // which is answered, and needs no other right, as PING does
			continue
		}
		l.ear.lose()
		if silent {
			return // the line is dead, though nobody has said so
		}
		select {
		case <-time.After(retryPause(failed)):
			failed++
		case <-l.ctx.Done():
			return
		}
	}
}

// mayHear tries to subscribe to a channel, and to be rid of it: nil if the user may.
func mayHear(ctx context.Context, rdb redis.UniversalClient, channel string) error {
	sub := rdb.Subscribe(ctx)
	defer func() { _ = sub.Close() }()
	for _, try := range []func() error{
		func() error { return sub.Subscribe(ctx, channel) },
		func() error { return sub.Unsubscribe(ctx, channel) },
	} {
		if err := try(); err != nil {
			return err
		}
		if _, err := sub.ReceiveTimeout(ctx, enqueueTimeout); err != nil {
			return err
		}
	}
	return nil
}

// hear hands a message on.
func (e *ear) hear(heard any) {
	switch m := heard.(type) {
	case *redis.Subscription:
		if l := e.lobby(m.Channel); l != nil && m.Kind == "subscribe" {
			l.tune(true)
		}
	case *redis.Message:
		if l := e.lobby(m.Channel); l != nil {
			l.hear(m.Payload)
		}
	}
}
