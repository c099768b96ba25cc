package pawl

// aside is what the handler of a run says beside its error. Most say nothing, so that it
// is made when one does.
type aside struct {
	staged   staged
	progress progress
}

// aside is that of the run, made if need be.
func (r *run) aside() *aside {
	if a := r.said.Load(); a != nil {
		return a
	}
	a := &aside{staged: staged{run: r}, progress: progress{run: r, said: r.before, stored: r.before}}
	if !r.said.CompareAndSwap(nil, a) {
		return r.said.Load()
	}
	// Who ends the run, or its lease, tells what is there by then.
	r.feed.mu.Lock()
	lost, over := r.lost, r.finished
	r.feed.mu.Unlock()
	if lost {
		a.progress.lost.Store(true)
	}
	if over {
		a.progress.end()
	}
	return a
}
