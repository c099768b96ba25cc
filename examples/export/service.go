package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/pawlq/pawl"
)

const (
	// keep is for how long a client may come for its result: 2 s, to be outlived soon. In
	// production it is an hour, or a day.
	keep = 2 * time.Second
	// patience is how long a request waits: 0.5 s, to run out soon. In production it is less
	// than what the proxies in between allow, such as 30 s.
	patience = 500 * time.Millisecond
)

// service is the HTTP side. It knows nothing of who makes the exports.
type service struct {
	queue   *pawl.Queue
	journal *journal
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /exports", s.create)
	mux.HandleFunc("GET /exports/{id}", withID(s.status))
	mux.HandleFunc("GET /exports/{id}/result", withID(s.result))
	mux.HandleFunc("DELETE /exports/{id}", withID(s.cancel))
	return mux
}

// withID gives a handler the id in the path. Anything else was never given out.
func withID(h func(http.ResponseWriter, *http.Request, pawl.ID)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := uuid.Parse(r.PathValue("id"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		h(w, r, id)
	}
}

// create answers as soon as the job is stored. Of a client that asks again because its
// answer was lost, examples/signup tells.
func (s *service) create(w http.ResponseWriter, r *http.Request) {
	var e Export
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&e)
	if err != nil || e.Table == "" || e.Pages < 1 {
		http.Error(w, `give {"table": "…", "pages": …}`, http.StatusBadRequest)
		return
	}
	job, err := s.queue.Enqueue(r.Context(), e, pawl.Retain(keep))
	if err != nil {
		http.Error(w, "exports are not available right now", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Location", "/exports/"+job.ID.String())
	answer(w, http.StatusAccepted, map[string]any{"id": job.ID})
}

// Status is how far an export is.
type Status struct {
	State   pawl.State `json:"state"`
	Percent float64    `json:"percent,omitempty"` // while it runs
	Note    string     `json:"note,omitempty"`
}

func (s Status) String() string {
	if s.Note == "" {
		return string(s.State)
	}
	return fmt.Sprintf("%s, %.0f %%, %s", s.State, s.Percent, s.Note)
}

// region export-status

func (s *service) status(w http.ResponseWriter, r *http.Request, id pawl.ID) {
	info, err := s.queue.Get(r.Context(), id)
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, Status{State: info.State, Percent: info.Percent, Note: info.Note})
}

// endregion

// region export-result

// result waits until the export is over, but no longer than its client does, and no
// longer than a request should take.
func (s *service) result(w http.ResponseWriter, r *http.Request, id pawl.ID) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	file, err := pawl.Await[File](ctx, s.queue, id)
	failed, ended := errors.AsType[*pawl.JobError](err)
	switch {
	case err == nil:
		answer(w, http.StatusOK, file)
	case r.Context().Err() != nil:
		s.journal.gone(id) // nobody is there to be answered; the export goes on
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "not yet: ask again", http.StatusAccepted)
	case ended && failed.State == pawl.StateDead:
		// In production, say what a client may know. The rest is in the dead-letter queue.
		http.Error(w, "the export failed: "+failed.Text, http.StatusInternalServerError)
	case ended:
		http.Error(w, "the export was "+string(failed.State), http.StatusGone)
	default:
		refuse(w, err)
	}
}

// endregion

// cancel does not wait until a running export has stopped: GET …/result does.
func (s *service) cancel(w http.ResponseWriter, r *http.Request, id pawl.ID) {
	switch err := s.queue.Cancel(r.Context(), id); {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, pawl.ErrState), errors.Is(err, pawl.ErrNotFound):
		http.Error(w, "the export is over", http.StatusConflict)
	default:
		refuse(w, err)
	}
}

// refuse answers an error of the queue. Who has an id has it from this service: a job that
// is not there was there.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, pawl.ErrNotFound) {
		http.Error(w, "the export is no longer kept", http.StatusGone)
		return
	}
	http.Error(w, "exports cannot be looked at at the moment", http.StatusServiceUnavailable)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
