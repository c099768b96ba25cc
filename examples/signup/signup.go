package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// service is the producer. It knows neither the worker nor the mail server.
type service struct {
	users    *users
	emails   *pawl.Queue
	patience time.Duration // with Redis, for one try to enqueue
	log      *slog.Logger
}

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signup", s.signUp)
	return mux
}

// region signup-handler

// signUp answers once Redis has the job, and does not wait for the mail. Who
// had no answer, or a 5xx, may sign up again: it is the same user, the same
// unique key, and one mail.
func (s *service) signUp(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	email := r.PostFormValue("email")
	if email == "" {
		http.Error(w, "an email is needed", http.StatusBadRequest)
		return
	}
	// Stored first: if this process dies before the enqueue nobody was told 202,
	// and the client comes again. The other way round a mail could greet nobody.
	user := s.users.store(email)

	err := s.enqueueWelcome(r.Context(), user)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, pawl.ErrFull):
		// Redis has no memory left. Workers go on, and make room.
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too busy, try again", http.StatusServiceUnavailable)
	default:
		s.log.Error("no welcome mail enqueued", "user", user.ID, "error", err)
		http.Error(w, "try again", http.StatusInternalServerError)
	}
}

func (s *service) enqueueWelcome(ctx context.Context, user user) error {
	// For is longer than anybody tries again. Without it the key would be free
	// once the mail is sent, and a late second try would send another.
	once := pawl.Unique{Key: pawl.Key("welcome", user.ID), For: 24 * time.Hour}
	for try := 1; ; try++ {
		// A client that hangs up does not end this: its user is stored.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
		_, err := s.emails.Enqueue(ctx, Welcome{UserID: user.ID, Email: user.Email}, once)
		cancel()
		// Unconfirmed: Redis has the job or not. Under the same key a second try
		// adds it if it is not there, and finds it if it is.
		if !errors.Is(err, pawl.ErrUnconfirmed) || try == 3 {
			return err
		}
	}
}

// endregion

type user struct {
	ID    int64
	Email string
}

// users stands for a table with a unique index on the address.
type users struct {
	mu      sync.Mutex
	byEmail map[string]user
}

func newUsers() *users { return &users{byEmail: map[string]user{}} }

// store adds a user, or finds the one who is there.
func (u *users) store(email string) user {
	u.mu.Lock()
	defer u.mu.Unlock()
	stored, ok := u.byEmail[email]
	if !ok {
		stored = user{ID: int64(len(u.byEmail)) + 1, Email: email}
		u.byEmail[email] = stored
	}
	return stored
}
