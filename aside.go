package pawl

// aside is what the handler of a run says beside its error. Most say nothing, so that it
// is made when one does.
type aside struct {
	staged   staged
	progress progress
}

// aside is that of the run, made if need be. Who ends the run, or its lease, notes that in
// the run, under the same mutex, before telling what is there.
func (r *run) aside() *aside {
	if a := r.said.Load(); a != nil {
		return a
	}
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if a := r.said.Load(); a != nil {
		return a
	}
	a := &aside{staged: staged{run: r}, progress: progress{run: r, said: r.before, stored: r.before, over: r.finished}}
	a.progress.lost.Store(r.lost)
	r.said.Store(a)
	return a
}
