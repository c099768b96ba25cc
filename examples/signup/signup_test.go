package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestASignUpIsAcceptedWithOneJobHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	s := newService(t, redistest.Start(t).Client(t), 10*time.Second)
	for range 3 {
		require.Equal(t, http.StatusAccepted, signUp(s, "ada@example.com").Code)
	}
	requireOneJob(t, s)
	require.Equal(t, http.StatusBadRequest, signUp(s, "").Code, "without an address")
}

func TestASignUpWhoseEnqueueIsUnconfirmedIsEnqueuedAgain(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	s := newService(t, proxy.Client(t), time.Second)
	require.Equal(t, http.StatusAccepted, signUp(s, "first@example.com").Code)

	// The next call is run, and its answer is lost until the try is over.
	lost := proxy.On("evalsha", proxy.Calls("evalsha")+1, redistest.RunDropReplyAndHold)
	require.Equal(t, http.StatusAccepted, signUp(s, "ada@example.com").Code)
	<-lost
	stats, err := s.emails.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, stats.Depth(), "one job each")
}

func TestASignUpIsToldToComeAgainWhereRedisIsFull(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s := newService(t, rdb, 10*time.Second)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	answer := signUp(s, "ada@example.com")
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "5", answer.Header().Get("Retry-After"))

	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Equal(t, http.StatusAccepted, signUp(s, "ada@example.com").Code)
	requireOneJob(t, s)
}

func TestASignUpWithoutRedisIsAnError(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	require.Equal(t, http.StatusInternalServerError, signUp(newService(t, rdb, 50*time.Millisecond), "ada@example.com").Code)
}

func newService(t *testing.T, rdb *redis.Client, patience time.Duration) *service {
	t.Helper()
	client, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	return &service{users: newUsers(), emails: client.Queue("emails"), patience: patience, log: slog.New(slog.DiscardHandler)}
}

func signUp(s *service, email string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/signup", strings.NewReader(url.Values{"email": {email}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, r)
	return w
}

func requireOneJob(t *testing.T, s *service) {
	t.Helper()
	stats, err := s.emails.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Depth())
}
