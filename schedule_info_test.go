package pawl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// opted has options of its own.
type opted struct{ N int }

func (opted) Kind() string { return "opted" }

func (opted) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.Priority(3), pawl.Retain(time.Hour), pawl.MaxAttempts(4)}
}

// What is stored can be read again: an edit can be verified.
func TestAScheduleIsReadAsItWasRegistered(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		prepared := func(args pawl.Args, opts ...pawl.Option) (payload []byte, list []pawl.Option) {
			raw, list, err := pawl.Config{}.Prepare(ctx, "mail", args, opts...)
			require.NoError(t, err)
			return raw.Payload, list
		}
		for name, c := range map[string]struct {
			change func(*pawl.Schedule)
			stored []pawl.Option // instead of those that were given
		}{
			"nothing":  {change: func(*pawl.Schedule) {}},
			"its type": {change: func(s *pawl.Schedule) { s.Args = opted{7} }},
			"over its type": {change: func(s *pawl.Schedule) {
				s.Args, s.Options = opted{7}, []pawl.Option{pawl.Priority(0), pawl.Delay(90 * time.Second)}
			}},
			"everything": {change: func(s *pawl.Schedule) {
				s.Missed = pawl.MissedAll
				s.Options = []pawl.Option{
					pawl.Delay(time.Minute), pawl.Priority(9), pawl.ExpireIn(time.Hour), pawl.Header{Key: "b", Value: "2"},
					pawl.Header{Key: "a", Value: "1"}, pawl.Unique{Key: "k", For: time.Minute, OnDuplicate: pawl.ReplaceWaiting},
					pawl.Idempotency{Key: "i", Window: time.Hour}, pawl.Retain(time.Second), pawl.Timeout(pawl.NoTimeout),
					pawl.MaxCrashes(2), pawl.VisibilityTimeout(time.Minute), pawl.Backoff{Base: time.Second, Jitter: pawl.JitterEqual},
				}
			}},
			"OverlapSkip": {change: func(s *pawl.Schedule) { s.Missed, s.Overlap = pawl.MissedSkip, pawl.OverlapSkip }},
			"a key of the arguments": {
				change: func(s *pawl.Schedule) {
					s.Options = []pawl.Option{pawl.Unique{}, pawl.Then{Args: note{2}, Options: []pawl.Option{pawl.Delay(time.Second)}}, pawl.Then{Args: opted{3}}}
				},
				stored: []pawl.Option{
					pawl.Unique{Key: "note:2bfd14f43d17fc7cea24e0917a8879b4"},
					pawl.Then{Args: pawl.Raw{Name: "note", Payload: []byte(`{"n":2}`)}, Options: []pawl.Option{pawl.Delay(time.Second)}},
					pawl.Then{
						Args:    pawl.Raw{Name: "opted", Payload: []byte(`{"N":3}`)},
						Options: []pawl.Option{pawl.Priority(3), pawl.Retain(time.Hour)}, // policies of a type do not travel
					},
				},
			},
		} {
			s := hourly("s", 1)
			c.change(&s)
			require.NoError(t, q.Schedule(ctx, s), name)
			info, err := q.GetSchedule(ctx, "s")
			require.NoError(t, err, name)
			payload, options := prepared(s.Args, s.Options...)
			if c.stored != nil {
				options = c.stored
			}
			require.Equal(t, payload, info.Payload, name)
			require.Equal(t, options, info.Options, name)
			require.Equal(t, s.Missed, info.OnMissed, name)
			require.Equal(t, s.Overlap, info.Overlap, name)
			require.Equal(t, only(t, q), info, name)

			// What was read is what was registered.
			again := pawl.Schedule{ID: "s", When: s.When, Args: pawl.Raw{Name: info.Kind, Payload: info.Payload},
				Options: info.Options, Missed: info.OnMissed, Overlap: info.Overlap}
			before := e.Redis.HGetAll(ctx, "pawl:{mail}:schedules:state").Val()
			require.NoError(t, q.Schedule(ctx, again), name)
			require.Equal(t, before, e.Redis.HGetAll(ctx, "pawl:{mail}:schedules:state").Val(), name)
		}
	})
}

func TestGetSchedule(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Canary(ctx, time.Minute))
		for id, want := range map[string]error{"s": pawl.ErrNotFound, "": pawl.ErrInvalid, "pawl:canary": pawl.ErrInvalid} {
			info, err := q.GetSchedule(ctx, id)
			require.ErrorIs(t, err, want, id)
			require.Zero(t, info)
		}
		_, err := e.Client.Queue("no such name").GetSchedule(ctx, "s")
		require.ErrorIs(t, err, pawl.ErrName)

		require.NoError(t, q.Schedule(ctx, hourly("s", 1), hourly("t", 2)))
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		_, err = q.Trigger(ctx, "s")
		require.NoError(t, err)
		info, err := q.GetSchedule(ctx, "s")
		require.NoError(t, err)
		require.True(t, info.Paused)
		require.EqualValues(t, 1, info.Fired)
		require.NotZero(t, info.Last, "Trigger's too")
		require.JSONEq(t, `{"n":1}`, string(info.Payload))

		// A definition of a newer build, and one whose state was lost.
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules", "s", "\x02and more").Err())
		info, err = q.GetSchedule(ctx, "s")
		require.NoError(t, err)
		require.Empty(t, info.Spec+info.Kind)
		require.EqualValues(t, 1, info.Fired)
		require.NoError(t, e.Redis.HDel(ctx, "pawl:{mail}:schedules:state", "t").Err())
		info, err = q.GetSchedule(ctx, "t")
		require.NoError(t, err)
		require.Zero(t, info.Next)
		require.JSONEq(t, `{"n":2}`, string(info.Payload))
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:schedules").Err())
		require.NoError(t, e.Redis.SAdd(ctx, "pawl:{mail}:schedules", "a set").Err())
		_, err = q.GetSchedule(ctx, "t")
		require.ErrorContains(t, err, "WRONGTYPE")
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:schedules", "pawl:{mail}:schedules:at", "pawl:{mail}:schedules:state").Err())
	})
}
