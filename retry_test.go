package pawl

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBackoff(t *testing.T) {
	t.Parallel()

	exact := func(b Backoff, n int) time.Duration {
		b.Jitter = JitterNone
		return b.Delay(n)
	}

	t.Run("by default waits 5s 15s 45s 2m15s 6m45s 20m15s 1h, and 1h from then on", func(t *testing.T) {
		t.Parallel()
		want := []time.Duration{
			5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second,
			405 * time.Second, 1215 * time.Second, time.Hour, time.Hour,
		}
		for i, d := range want {
			require.Equal(t, d, exact(Backoff{}, i+1), "after attempt %d", i+1)
			require.Equal(t, d, exact(DefaultBackoff, i+1), "after attempt %d", i+1)
		}
		lo, hi := Backoff{}.span(1)
		require.Equal(t, []time.Duration{2500 * time.Millisecond, 5 * time.Second}, []time.Duration{lo, hi})
	})
	t.Run("outlives an outage of 45 minutes with 8 attempts, and is dead after 91", func(t *testing.T) {
		t.Parallel()
		var least, most time.Duration
		for n := 1; n < 8; n++ {
			lo, hi := Backoff{}.span(n)
			least, most = least+lo, most+hi
		}
		require.Greater(t, least, 45*time.Minute)
		require.Less(t, most, 91*time.Minute)
	})

	const maxDuration = time.Duration(math.MaxInt64)
	for name, tc := range map[string]struct {
		b    Backoff
		n    int
		want time.Duration
	}{
		"counts an n below 1 as 1":              {Backoff{}, math.MinInt, 5 * time.Second},
		"keeps to Max for a huge n":             {Backoff{}, 1 << 30, time.Hour},
		"keeps to Max for the greatest n":       {Backoff{Factor: 1.5}, math.MaxInt, time.Hour},
		"does not overflow with a huge factor":  {Backoff{Factor: 1e300, Max: maxDuration}, 3, maxDuration},
		"does not overflow with a huge base":    {Backoff{Base: maxDuration - 1, Max: maxDuration}, 2, maxDuration},
		"does not overflow by a rounding":       {Backoff{Base: 6148914691236517205, Factor: 1.5, Max: maxDuration}, 2, maxDuration},
		"is exact for a huge base":              {Backoff{Base: maxDuration - 1, Factor: 1.5, Max: maxDuration}, 1, maxDuration - 1},
		"is exact where doubles are not":        {Backoff{Base: 1, Factor: 3, Max: maxDuration}, 39, 1350851717672992089},
		"reaches the greatest power below Max":  {Backoff{Base: 1, Factor: 2, Max: maxDuration}, 63, 1 << 62},
		"stops at Max above the greatest power": {Backoff{Base: 1, Factor: 2, Max: maxDuration}, 64, maxDuration},
		"is constant with a factor of 1":        {Backoff{Base: time.Second, Factor: 1}, 1 << 30, time.Second},
		"grows by a fraction":                   {Backoff{Base: time.Second, Factor: 1.5}, 3, 2250 * time.Millisecond},
		"grows by hardly more than 1":           {Backoff{Base: time.Second, Factor: 1 + 1e-9}, 2, time.Second + 1},
		"has the default factor and Max":        {Backoff{Base: time.Minute}, 3, 9 * time.Minute},
		"has the default base and Max":          {Backoff{Factor: 2}, 2, 10 * time.Second},
		"has the default base and factor":       {Backoff{Max: time.Minute}, 4, time.Minute},
		"begins at Max if Base is above":        {Backoff{Base: 2 * time.Hour}, 1, time.Hour},
		"takes the first step first":            {Backoff{Steps: []time.Duration{1, 2, 3}}, 1, 1},
		"takes the first step for n below 1":    {Backoff{Steps: []time.Duration{1, 2, 3}}, -5, 1},
		"repeats the last step":                 {Backoff{Steps: []time.Duration{1, 2, 3}}, math.MaxInt, 3},
		"has steps in any order":                {Backoff{Steps: []time.Duration{3, 1, 2}}, 2, 1},
		"does not use Base with steps":          {Backoff{Base: time.Hour, Factor: 9, Steps: []time.Duration{1}}, 2, 1},
		"does not cap steps by the default Max": {Backoff{Steps: []time.Duration{24 * time.Hour}}, 1, 24 * time.Hour},
		"caps steps by a Max that is set":       {Backoff{Max: time.Hour, Steps: []time.Duration{24 * time.Hour}}, 1, time.Hour},
		"has no steps if there are none":        {Backoff{Steps: []time.Duration{}}, 1, 5 * time.Second},
		"may wait for nothing":                  {Backoff{Steps: []time.Duration{0}}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, exact(tc.b, tc.n))
		})
	}

	t.Run("spreads equal jitter over the upper half and full jitter over all", func(t *testing.T) {
		t.Parallel()
		b := Backoff{Base: 4, Factor: 1, Max: 4}
		for jitter, want := range map[Jitter][]time.Duration{
			JitterDefault: {2, 3, 4}, JitterEqual: {2, 3, 4}, JitterFull: {0, 1, 2, 3, 4}, JitterNone: {4},
		} {
			b.Jitter = jitter
			seen := map[time.Duration]bool{}
			for range 1000 {
				seen[b.Delay(1)] = true
			}
			require.Len(t, seen, len(want))
			for _, d := range want {
				require.Contains(t, seen, d)
			}
		}
	})
	t.Run("has jitter over the whole range of a Duration", func(t *testing.T) {
		t.Parallel()
		b := Backoff{Base: maxDuration, Max: maxDuration, Jitter: JitterFull}
		for range 100 {
			require.GreaterOrEqual(t, b.Delay(1), time.Duration(0))
		}
	})
	t.Run("stays in its bounds, even if it would be refused", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			b := Backoff{
				Base:   time.Duration(rapid.Int64().Draw(t, "base")),
				Factor: rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1)), rapid.Just(math.Inf(-1))).Draw(t, "factor"),
				Max:    time.Duration(rapid.Int64().Draw(t, "max")),
				Jitter: Jitter(rapid.IntRange(-1, 5).Draw(t, "jitter")),
			}
			if rapid.Bool().Draw(t, "with steps") {
				for _, d := range rapid.SliceOf(rapid.Int64()).Draw(t, "steps") {
					b.Steps = append(b.Steps, time.Duration(d))
				}
			}
			n := rapid.Int().Draw(t, "n")
			d := b.Delay(n)
			lo, hi := b.span(n)
			require.LessOrEqual(t, lo, d)
			require.LessOrEqual(t, d, hi)
			require.GreaterOrEqual(t, lo, time.Duration(0))
			if b.Max != 0 {
				require.LessOrEqual(t, hi, max(b.Max, 0))
			} else if len(b.Steps) == 0 {
				require.LessOrEqual(t, hi, time.Hour)
			}
		})
	})
	t.Run("has bounds that never fall", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			most := rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")
			b := Backoff{
				Base:   time.Duration(rapid.Int64Range(1, most).Draw(t, "base")),
				Factor: 1 + float64(rapid.IntRange(0, 9000).Draw(t, "thousandths"))/1000,
				Max:    time.Duration(most),
				Jitter: Jitter(rapid.IntRange(0, 3).Draw(t, "jitter")),
			}
			require.NoError(t, b.validate())
			n := rapid.IntRange(1, 1<<20).Draw(t, "n")
			lo, hi := b.span(n)
			lo1, hi1 := b.span(n + 1)
			require.LessOrEqual(t, lo, lo1)
			require.LessOrEqual(t, hi, hi1)
		})
	})
}

func TestBackoffOption(t *testing.T) {
	t.Parallel()

	const day = 24 * time.Hour
	for name, b := range map[string]Backoff{
		"zero":                          {},
		"the default":                   DefaultBackoff,
		"constant":                      {Factor: 1},
		"long, with a Max":              {Base: day, Max: day},
		"steps, however long":           {Steps: []time.Duration{0, day, 365 * day}},
		"steps with an unused Base":     {Base: day, Steps: []time.Duration{1}},
		"as many steps as there may be": {Steps: make([]time.Duration, maxSteps)},
	} {
		t.Run("may be "+name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, b.validate())
		})
	}
	for name, tc := range map[string]struct {
		b    Backoff
		says string
	}{
		"of a negative base":              {Backoff{Base: -1}, "use a time above 0"},
		"of a factor below 1":             {Backoff{Factor: 0.5}, "use 1 for a constant wait"},
		"of a negative factor":            {Backoff{Factor: -3}, "use 1 for a constant wait"},
		"of a factor that is NaN":         {Backoff{Factor: math.NaN()}, "use 1 for a constant wait"},
		"of an infinite factor":           {Backoff{Factor: math.Inf(1)}, "use 1 for a constant wait"},
		"of a negative Max":               {Backoff{Max: -1}, "use a time above 0"},
		"of a base above Max":             {Backoff{Base: day, Max: time.Hour}, "set Max to as much"},
		"of a base above the default Max": {Backoff{Base: day}, "set Max to as much"},
		"of a Max below the default base": {Backoff{Max: time.Second}, "set Max to as much"},
		"of an unknown jitter":            {Backoff{Jitter: JitterNone + 1}, "use JitterEqual"},
		"of a negative jitter":            {Backoff{Jitter: -1}, "use JitterEqual"},
		"of a negative step":              {Backoff{Steps: []time.Duration{1, -1}}, "use 0 to retry at once"},
		"of too many steps":               {Backoff{Steps: make([]time.Duration, maxSteps+1)}, "at most 100"},
	} {
		t.Run("must not be "+name, func(t *testing.T) {
			t.Parallel()
			err := tc.b.validate()
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tc.says)
			_, err = resolve([]Option{tc.b}, nil)
			require.ErrorIs(t, err, ErrInvalid)
		})
	}
	t.Run("does not follow later changes of its steps", func(t *testing.T) {
		t.Parallel()
		steps := []time.Duration{1}
		p, err := handlePolicy([]HandleOption{Backoff{Steps: steps}})
		require.NoError(t, err)
		steps[0] = 2
		require.Equal(t, []time.Duration{1}, p.backoff.Steps)
	})
}
