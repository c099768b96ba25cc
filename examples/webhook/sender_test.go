package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// The first wait of the backoff policy, with its jitter.
const (
	atLeast = 50 * time.Millisecond
	atMost  = 101 * time.Millisecond
)

// TestWhatAnAnswerMeans runs the handler under a fake clock, without a network:
// each first answer is followed by 200 OK, if there is a second request.
func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	day := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC) // by the clock of the endpoint
	date := func(d time.Duration) string { return day.Add(d).Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		code       int
		retryAfter string
		date       string
		wait       time.Duration // exactly; 0: by the policy
		dead       bool
		done       bool
	}{
		"200":                            {code: 200, done: true},
		"204":                            {code: 204, done: true},
		"429 with seconds":               {code: 429, retryAfter: "120", wait: 2 * time.Minute},
		"503 with seconds":               {code: 503, retryAfter: "7", wait: 7 * time.Second},
		"503 with a date":                {code: 503, retryAfter: date(time.Hour), date: date(0), wait: time.Hour},
		"429 with more than the longest": {code: 429, retryAfter: "99999999", wait: longestWait},
		"429 with a date that is past":   {code: 429, retryAfter: date(-time.Hour), date: date(0)},
		"429 with a date and no Date":    {code: 429, retryAfter: date(0), wait: longestWait}, // by the fake clock of 2000
		"429 with what is neither":       {code: 429, retryAfter: "soon"},
		"429 with nothing":               {code: 429},
		"503 with zero":                  {code: 503, retryAfter: "0"},
		"408":                            {code: 408},
		"425":                            {code: 425},
		"500, which has no such header":  {code: 500, retryAfter: "120"},
		"no answer":                      {code: 0},
		"301":                            {code: 301, dead: true},
		"404":                            {code: 404, dead: true},
		"410":                            {code: 410, dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
				var at []time.Time
				s := newSender(map[string]endpoint{"acme": {URL: "http://acme.example/events?token=secret"}})
				s.client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Now())
					switch {
					case len(at) > 1:
						return respond(r, http.StatusOK, http.Header{}), nil
					case c.code == 0:
						return nil, errors.New("refused")
					}
					h := http.Header{"Location": {"http://elsewhere.example/"}}
					h.Set("Retry-After", c.retryAfter)
					h.Set("Date", c.date)
					return respond(r, c.code, h), nil
				})
				report := env.Drain(newWorker(t, env, s))

				switch {
				case c.dead:
					require.Len(t, at, 1)
					require.Len(t, report.Dead, 1)
					require.Equal(t, pawl.ReasonPermanent, report.Dead[0].Reason)
					return
				case c.done:
					require.Len(t, at, 1)
				default:
					require.Len(t, at, 2)
					low, high := atLeast, atMost
					if c.wait > 0 {
						low, high = c.wait, c.wait+time.Millisecond
					}
					require.WithinRange(t, at[1], at[0].Add(low), at[0].Add(high))
					require.NotContains(t, report.Runs[0].Err.Error(), "token", "a URL may hold one")
				}
				require.Empty(t, report.Dead)
			})
		})
	}
}

func TestADeliveryToAnEndpointThatIsNoMoreIsDiscarded(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		report := env.Drain(newWorker(t, env, newSender(nil)))
		require.Len(t, report.Runs, 1)
		require.ErrorContains(t, report.Runs[0].Err, "removed the endpoint")
		require.Empty(t, report.Dead)
	})
}

func newWorker(t *testing.T, env *pawltest.Env, s *sender) *pawl.Worker {
	t.Helper()
	_, err := publish(t.Context(), env.Client.Queue("webhooks"), "evt_1", "acme")
	require.NoError(t, err)
	w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("webhooks")})
	require.NoError(t, err)
	pawl.Handle(w, s.deliver)
	return w
}

// roundTrip stands for the network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(r *http.Request, code int, h http.Header) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: h, Request: r, Body: io.NopCloser(strings.NewReader(""))}
}
