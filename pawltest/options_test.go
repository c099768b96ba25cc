package pawltest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// at is a time of the bubbles, which begin in the year 2000.
var at = time.Date(2000, 1, 2, 3, 4, 5, 600_000_001, time.UTC)

// each option, equal and unequal ones, and what is said of an unequal one and of
// a job that has none.
var options = map[string]struct {
	has         pawl.Option
	equal       []pawl.Option
	other       []pawl.Option
	says, plain string
}{
	"Delay": {pawl.Delay(time.Hour), []pawl.Option{pawl.Delay(time.Hour)},
		[]pawl.Option{pawl.Delay(time.Minute), pawl.Delay(0), pawl.Delay(time.Hour + time.Second)},
		"pawl.Delay: want 1m0s, has 1h0m0s", "pawl.Delay: want 1h0m0s, has 0s"},
	"a Delay that is rounded up": {pawl.Delay(time.Second + 1), []pawl.Option{pawl.Delay(time.Second + 1), pawl.Delay(time.Second + time.Millisecond)},
		[]pawl.Option{pawl.Delay(2 * time.Second)}, "want 2s, has 1.001s", ""},
	"At": {pawl.At(at), []pawl.Option{pawl.At(at), pawl.At(at.In(time.FixedZone("x", 3600)))}, []pawl.Option{pawl.At(at.Add(time.Second))},
		"pawl.At: want 2000-01-02T03:04:06.600000001Z, has 2000-01-02T03:04:05.601Z", ""},
	"Priority": {pawl.Priority(3), []pawl.Option{pawl.Priority(3), pawl.Delay(0)}, []pawl.Option{pawl.Priority(4), pawl.Priority(0)},
		"pawl.Priority: want 4, has 3", "pawl.Priority: want 3, has none of its own"},
	"Header": {pawl.Header{Key: "k", Value: "v"}, []pawl.Option{pawl.Header{Key: "k", Value: "v"}},
		[]pawl.Option{pawl.Header{Key: "k", Value: "w"}, pawl.Header{Key: "K", Value: "v"}},
		`pawl.Header: want {Key:k Value:w}, has headers map["k":"v"]`, `has headers map[]`},
	"ExpireIn": {pawl.ExpireIn(time.Hour), []pawl.Option{pawl.ExpireIn(time.Hour)}, []pawl.Option{pawl.ExpireIn(time.Minute)},
		"pawl.ExpireIn: want 1m0s, has 1h0m0s", "pawl.ExpireIn: want 1h0m0s, has none of its own"},
	"Retain": {pawl.Retain(time.Hour), []pawl.Option{pawl.Retain(time.Hour)}, []pawl.Option{pawl.Retain(time.Minute)},
		"pawl.Retain: want 1m0s, has 1h0m0s", "pawl.Retain: want 1h0m0s, has none of its own"},
	"Unique": {pawl.Unique{Key: "k", For: time.Hour}, []pawl.Option{pawl.Unique{Key: "k", For: time.Hour}},
		[]pawl.Option{pawl.Unique{Key: "k"}, pawl.Unique{Key: "l", For: time.Hour}, pawl.Unique{Key: "k", For: time.Hour, Until: pawl.UntilStarted},
			pawl.Unique{Key: "k", For: time.Hour, OnDuplicate: pawl.RejectDuplicate}, pawl.Unique{}},
		"pawl.Unique: want {Key:k Until:0 For:0s OnDuplicate:0}, has {Key:k Until:0 For:1h0m0s OnDuplicate:0}", "has none of its own"},
	"Unique of the arguments": {pawl.Unique{}, []pawl.Option{pawl.Unique{}}, []pawl.Option{pawl.Unique{Key: "k"}}, "has {Key:welcome:", ""},
	"Idempotency": {pawl.Idempotency{Key: "k", Window: time.Hour}, []pawl.Option{pawl.Idempotency{Key: "k", Window: time.Hour}},
		[]pawl.Option{pawl.Idempotency{Key: "k"}, pawl.Idempotency{Key: "l", Window: time.Hour}},
		"pawl.Idempotency: want {Key:k Window:0s}, has {Key:k Window:1h0m0s}", "has none of its own"},
	"Idempotency for a day": {pawl.Idempotency{Key: "k"}, []pawl.Option{pawl.Idempotency{Key: "k"}, pawl.Idempotency{Key: "k", Window: 24 * time.Hour}},
		[]pawl.Option{pawl.Idempotency{Key: "k", Window: time.Hour}}, "has {Key:k Window:24h0m0s}", ""},
	"MaxAttempts": {pawl.MaxAttempts(3), []pawl.Option{pawl.MaxAttempts(3)}, []pawl.Option{pawl.MaxAttempts(4)},
		"pawl.MaxAttempts: want 4, has 3", "pawl.MaxAttempts: want 3, has none of its own"},
	"Timeout": {pawl.Timeout(time.Minute), []pawl.Option{pawl.Timeout(time.Minute)}, []pawl.Option{pawl.Timeout(time.Hour), pawl.Timeout(pawl.NoTimeout)},
		"pawl.Timeout: want 1h0m0s, has 1m0s", "has none of its own"},
	"NoTimeout":  {pawl.Timeout(pawl.NoTimeout), []pawl.Option{pawl.Timeout(pawl.NoTimeout)}, []pawl.Option{pawl.Timeout(time.Hour)}, "want 1h0m0s", ""},
	"MaxCrashes": {pawl.MaxCrashes(3), []pawl.Option{pawl.MaxCrashes(3)}, []pawl.Option{pawl.MaxCrashes(4)}, "want 4, has 3", "has none of its own"},
	"VisibilityTimeout": {pawl.VisibilityTimeout(time.Minute), []pawl.Option{pawl.VisibilityTimeout(time.Minute)}, []pawl.Option{pawl.VisibilityTimeout(time.Hour)},
		"pawl.VisibilityTimeout: want 1h0m0s, has 1m0s", "has none of its own"},
	"Backoff": {pawl.Backoff{Steps: []time.Duration{1, 2}}, []pawl.Option{pawl.Backoff{Steps: []time.Duration{1, 2}}},
		[]pawl.Option{pawl.Backoff{Steps: []time.Duration{1, 3}}, pawl.Backoff{}, pawl.DefaultBackoff},
		"pawl.Backoff: want {Base:0s Factor:0 Max:0s Jitter:0 Steps:[1ns 3ns]}, has {Base:0s Factor:0 Max:0s Jitter:0 Steps:[1ns 2ns]}", "has none of its own"},
}

func TestEachOptionIsComparedWithTheJobsOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range options {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
				enqueue(t, env, "emails", welcome{1}, tc.has)
				for _, o := range tc.equal {
					pawltest.RequireEnqueued(env, "emails", welcome{1}, o)
				}
			})
			for i, o := range tc.other {
				text := failing(t, func(t testing.TB, env *pawltest.Env) {
					enqueue(t, env, "emails", welcome{1}, tc.has)
					pawltest.RequireEnqueued(env, "emails", welcome{1}, o)
				})
				require.Contains(t, text, "the job in queue \"emails\" that equals\n\twelcome {\"user_id\":1}\nhas other options:\n\tpawl.", "%+v", o)
				if i == 0 {
					require.Contains(t, text, tc.says)
				}
			}
			text := failing(t, func(t testing.TB, env *pawltest.Env) {
				enqueue(t, env, "emails", welcome{1})
				pawltest.RequireEnqueued(env, "emails", welcome{1}, tc.has)
			})
			require.Contains(t, text, tc.plain)
			require.NotEmpty(t, text)
		})
	}
}

func TestAllOptionsThatDifferAreNamed(t *testing.T) {
	t.Parallel()
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour), pawl.Priority(2))
		pawltest.RequireEnqueued(env, "emails", welcome{1}, pawl.Delay(time.Minute), pawl.Priority(2), pawl.MaxAttempts(2))
	})
	require.Equal(t, 2, strings.Count(text, "want"))
	require.True(t, strings.HasSuffix(text, "\n\tpawl.Delay: want 1m0s, has 1h0m0s\n\tpawl.MaxAttempts: want 2, has none of its own"), text)
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	text := failing(t, func(_ testing.TB, env *pawltest.Env) {
		pawltest.RequireEnqueued(env, "emails", welcome{1}, pawl.Delay(-time.Hour))
	})
	require.Contains(t, text, "pawltest: RequireEnqueued: pawl: invalid: Delay(-1h0m0s) is negative")
}

func TestADelayIsToldFromJobsOfTheSameMoment(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		args := make([]welcome, 1500) // whose ids are 1.5 ms apart at last
		_, err := env.Client.Queue("emails").EnqueueMany(t.Context(), pawl.Items(args))
		require.NoError(t, err)
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour))
		pawltest.RequireEnqueued(env, "emails", welcome{1}, pawl.Delay(time.Hour))
		enqueue(t, env, "emails", welcome{2}, pawl.At(time.Now().Add(-time.Hour)))
		pawltest.RequireEnqueued(env, "emails", welcome{2}, pawl.At(time.Now().Add(-time.Hour)))
		pawltest.RequireEnqueued(env, "emails", welcome{2}, pawl.Delay(0))
	})
}

// typed is a job whose type has options.
type typed struct{}

func (typed) Kind() string { return "typed" }
func (typed) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.Delay(time.Hour), pawl.Unique{}, pawl.MaxAttempts(2)}
}

func TestWhatTheTypeSaysOfTheQueueIsTheJobsOwn(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		enqueue(t, env, "emails", typed{})
		pawltest.RequireEnqueued(env, "emails", typed{}, pawl.Delay(time.Hour), pawl.Unique{})
	})
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", typed{})
		pawltest.RequireEnqueued(env, "emails", typed{}, pawl.MaxAttempts(2))
	})
	require.Contains(t, text, "pawl.MaxAttempts: want 2, has none of its own", "it is read where the job runs")
}
