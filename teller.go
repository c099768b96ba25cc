package pawl

import "sync"

// A teller calls hooks one after another in a goroutine of their own, for those
// who must not wait for them.
type teller struct {
	mu   sync.Mutex
	news []func()
	done chan struct{} // closed when all is told; nil while there is nothing
}

// tell has fn called after what was told before. A panic in it is the hooks' to
// recover; it may end its goroutine.
func (t *teller) tell(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.news = append(t.news, fn)
	if t.done == nil {
		t.done = make(chan struct{})
		go t.talk()
	}
}

func (t *teller) talk() {
	returned := false
	defer func() {
		if !returned {
			go t.talk() // a hook has called runtime.Goexit
		}
	}()
	for {
		t.mu.Lock()
		if len(t.news) == 0 {
			close(t.done)
			t.done = nil
			t.mu.Unlock()
			returned = true
			return
		}
		fn := t.news[0]
		t.news = t.news[1:]
		t.mu.Unlock()
		fn()
	}
}

// silence is closed when all that was told so far has been.
func (t *teller) silence() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return t.done
}
