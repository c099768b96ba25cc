package pawl

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOptions(t *testing.T) {
	t.Parallel()

	moment := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		opt  Option
		want settings
	}{
		"Delay":                      {Delay(time.Minute), settings{delay: time.Minute, given: givenDelay}},
		"Delay of 0":                 {Delay(0), settings{given: givenDelay}},
		"Delay of 100 years":         {Delay(maxWait), settings{delay: maxWait, given: givenDelay}},
		"At":                         {At(moment), settings{at: moment}},
		"At long ago":                {At(time.Unix(0, 0)), settings{at: time.Unix(0, 0)}},
		"Priority":                   {Priority(9), settings{priority: 9, given: givenPriority}},
		"Priority of 0":              {Priority(0), settings{given: givenPriority}},
		"Header":                     {Header{"k", "v"}, settings{headers: Headers{"k": "v"}}},
		"ExpireIn":                   {ExpireIn(1), settings{expireIn: 1}},
		"Retain":                     {Retain(1), settings{retain: 1}},
		"Retain for 100 years":       {Retain(maxWait), settings{retain: maxWait}},
		"Unique":                     {Unique{Key: "k"}, settings{unique: &Unique{Key: "k"}}},
		"Idempotency":                {Idempotency{Key: "k", Window: 1}, settings{idempotency: &Idempotency{Key: "k", Window: 1}}},
		"Idempotency for a day":      {Idempotency{Key: "k"}, settings{idempotency: &Idempotency{Key: "k", Window: 24 * time.Hour}}},
		"Idempotency for 100 years":  {Idempotency{Key: "k", Window: maxWait}, settings{idempotency: &Idempotency{Key: "k", Window: maxWait}}},
		"MaxAttempts":                {MaxAttempts(1), settings{policy: policy{maxAttempts: 1}}},
		"MaxAttempts of 0":           {MaxAttempts(0), settings{}},
		"MaxAttempts of 10000":       {MaxAttempts(10_000), settings{policy: policy{maxAttempts: 10_000}}},
		"Timeout":                    {Timeout(time.Minute), settings{policy: policy{timeout: time.Minute}}},
		"Timeout of NoTimeout":       {Timeout(NoTimeout), settings{policy: policy{timeout: -1}}},
		"Timeout of 0":               {Timeout(0), settings{}},
		"MaxCrashes":                 {MaxCrashes(255), settings{policy: policy{maxCrashes: 255}}},
		"MaxCrashes of 0":            {MaxCrashes(0), settings{}},
		"VisibilityTimeout":          {VisibilityTimeout(100 * time.Millisecond), settings{policy: policy{visibility: 100 * time.Millisecond}}},
		"VisibilityTimeout of a day": {VisibilityTimeout(24 * time.Hour), settings{policy: policy{visibility: 24 * time.Hour}}},
		"VisibilityTimeout of 0":     {VisibilityTimeout(0), settings{}},
		"Backoff":                    {Backoff{Factor: 2}, settings{policy: policy{backoff: &Backoff{Factor: 2}}}},
		"Backoff of 0":               {Backoff{}, settings{policy: policy{backoff: &Backoff{}}}},
		"a pointer to an option":     {new(Priority(3)), settings{priority: 3, given: givenPriority}},
	} {
		t.Run("include "+name, func(t *testing.T) {
			t.Parallel()
			s, err := resolve([]Option{tc.opt}, nil)
			require.NoError(t, err)
			require.Equal(t, tc.want, s)
			if h, ok := tc.opt.(HandleOption); ok {
				p, err := handlePolicy([]HandleOption{h})
				require.NoError(t, err)
				require.Equal(t, tc.want.policy, p)
			}
		})
	}

	for name, tc := range map[string]struct {
		opts []Option
		says string
	}{
		"nil":                             {[]Option{Priority(1), nil}, "option 2 of 2 is nil: leave it out"},
		"a nil pointer":                   {[]Option{(*Delay)(nil)}, "option 1 of 1 is nil"},
		"a negative Delay":                {[]Option{Delay(-1)}, "to run at once, leave it out"},
		"a Delay above 100 years":         {[]Option{Delay(maxWait + 1)}, "above 100 years"},
		"At the zero time":                {[]Option{At{}}, "leave At out"},
		"At before the year 1":            {[]Option{At(time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC))}, "from 1 to 9999"},
		"At after the year 9999":          {[]Option{At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}, "from 1 to 9999"},
		"At after the year 9999 in UTC":   {[]Option{At(time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200)))}, "from 1 to 9999"},
		"Delay with At":                   {[]Option{Delay(0), At(moment)}, "both Delay and At"},
		"At with Delay":                   {[]Option{At(moment), Delay(1)}, "both Delay and At"},
		"Priority of 10":                  {[]Option{Priority(10)}, "give 1 to 9, or 0 for none"},
		"a negative Priority":             {[]Option{Priority(-1)}, "give 1 to 9, or 0 for none"},
		"a Header that is invalid":        {[]Option{Header{"a b", "v"}}, "printable ASCII"},
		"a Header given twice":            {[]Option{Header{"k", "v"}, Header{"k", "w"}}, `Header "k" is given twice`},
		"too many Headers":                {[]Option{Header{"a", strings.Repeat("v", 4000)}, Header{"b", strings.Repeat("v", 4000)}}, "at most 4096"},
		"ExpireIn of 0":                   {[]Option{ExpireIn(0)}, "leave it out"},
		"a negative ExpireIn":             {[]Option{ExpireIn(-1)}, "leave it out"},
		"ExpireIn above 100 years":        {[]Option{ExpireIn(math.MaxInt64)}, "leave it out"},
		"Retain of 0":                     {[]Option{Retain(0)}, "for a job that is not kept, leave it out"},
		"a negative Retain":               {[]Option{Retain(-1)}, "leave it out"},
		"Retain above 100 years":          {[]Option{Retain(maxWait + 1)}, "give less"},
		"Retain twice":                    {[]Option{Retain(1), Retain(1)}, "Retain is given twice"},
		"negative MaxAttempts":            {[]Option{MaxAttempts(-1)}, "1, which is never to retry"},
		"MaxAttempts above 10000":         {[]Option{MaxAttempts(10_001)}, "to 10000"},
		"negative MaxCrashes":             {[]Option{MaxCrashes(-1)}, "give 1 to 255"},
		"MaxCrashes above 255":            {[]Option{MaxCrashes(256)}, "give 1 to 255"},
		"a negative Timeout":              {[]Option{Timeout(-time.Second)}, "NoTimeout for no bound"},
		"a Timeout above 100 years":       {[]Option{Timeout(math.MaxInt64)}, "NoTimeout for no bound"},
		"a negative VisibilityTimeout":    {[]Option{VisibilityTimeout(-1)}, "give 100ms to 24h"},
		"a VisibilityTimeout below 100ms": {[]Option{VisibilityTimeout(99 * time.Millisecond)}, "give 100ms to 24h"},
		"a VisibilityTimeout above a day": {[]Option{VisibilityTimeout(24*time.Hour + 1)}, "give 100ms to 24h"},
		"Delay twice":                     {[]Option{Delay(0), Delay(0)}, "Delay is given twice"},
		"At twice":                        {[]Option{At(moment), At(moment)}, "At is given twice"},
		"Priority twice":                  {[]Option{Priority(0), Priority(1)}, "Priority is given twice"},
		"ExpireIn twice":                  {[]Option{ExpireIn(1), ExpireIn(1)}, "ExpireIn is given twice"},
		"Unique twice":                    {[]Option{Unique{}, Unique{}}, "Unique is given twice"},
		"Idempotency twice":               {[]Option{Idempotency{Key: "k"}, Idempotency{Key: "k"}}, "Idempotency is given twice"},
		"Idempotency without a key":       {[]Option{Idempotency{Window: time.Hour}}, "say what the effect is for"},
		"Idempotency with a long key":     {[]Option{Idempotency{Key: strings.Repeat("k", 513)}}, "use at most 512, such as a hash of it"},
		"Idempotency with a negative":     {[]Option{Idempotency{Key: "k", Window: -1}}, "for the default of 24h0m0s, leave it out"},
		"Idempotency above 100 years":     {[]Option{Idempotency{Key: "k", Window: maxWait + 1}}, "use at most 100 years"},
		"MaxAttempts twice":               {[]Option{MaxAttempts(1), MaxAttempts(2)}, "MaxAttempts is given twice"},
		"MaxCrashes twice":                {[]Option{MaxCrashes(1), MaxCrashes(2)}, "MaxCrashes is given twice"},
		"Timeout twice":                   {[]Option{Timeout(1), Timeout(2)}, "Timeout is given twice"},
		"VisibilityTimeout twice":         {[]Option{VisibilityTimeout(time.Second), VisibilityTimeout(time.Second)}, "VisibilityTimeout is given twice"},
		"Backoff twice":                   {[]Option{Backoff{}, Backoff{}}, "Backoff is given twice"},
		"an option and a pointer to one":  {[]Option{Delay(1), new(Delay(1))}, "Delay is given twice"},
	} {
		t.Run("must not be "+name, func(t *testing.T) {
			t.Parallel()
			s, err := resolve(tc.opts, nil)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tc.says)
			require.Zero(t, s)
			_, err = resolve(nil, tc.opts)
			require.ErrorIs(t, err, ErrInvalid, "of the type")
		})
	}

	t.Run("that are wrong are all in one error", func(t *testing.T) {
		t.Parallel()
		_, err := resolve([]Option{Delay(-1), nil, Priority(10)}, []Option{MaxAttempts(-1)})
		for _, says := range []string{"Delay(-1ns)", "option 2 of 3", "Priority(10)", "JobOptions: pawl: invalid: MaxAttempts(-1)"} {
			require.ErrorContains(t, err, says)
		}
	})
	t.Run("can be compared", func(t *testing.T) {
		t.Parallel()
		same := [][2]Option{
			{Delay(1), Delay(1)}, {At(moment), At(moment)}, {Priority(1), Priority(1)}, {Header{"k", "v"}, Header{"k", "v"}},
			{ExpireIn(1), ExpireIn(1)}, {Retain(1), Retain(1)}, {MaxAttempts(1), MaxAttempts(1)}, {Timeout(1), Timeout(1)},
			{MaxCrashes(1), MaxCrashes(1)}, {Idempotency{Key: "k"}, Idempotency{Key: "k"}}, {VisibilityTimeout(1), VisibilityTimeout(1)},
		}
		for _, s := range same {
			require.True(t, s[0] == s[1])
		}
		require.False(t, Option(Delay(1)) == Option(ExpireIn(1)))
	})
}

func TestResolve(t *testing.T) {
	t.Parallel()

	moment := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		call, typ []Option
		want      settings
	}{
		"of nothing is nothing": {nil, nil, settings{}},
		"takes what the type says": {
			nil, []Option{Delay(1), Priority(2), ExpireIn(3), Unique{Key: "t"}, Header{"k", "t"}},
			settings{delay: 1, priority: 2, expireIn: 3, unique: &Unique{Key: "t"}, headers: Headers{"k": "t"}, given: givenDelay | givenPriority},
		},
		"prefers what the call gives": {
			[]Option{Delay(4), Priority(5), ExpireIn(6), Unique{Key: "c"}, Header{"k", "c"}},
			[]Option{Delay(1), Priority(2), ExpireIn(3), Unique{Key: "t", For: 1}, Header{"k", "t"}},
			settings{delay: 4, priority: 5, expireIn: 6, unique: &Unique{Key: "c"}, headers: Headers{"k": "c"}, given: givenDelay | givenPriority},
		},
		"prefers a zero that the call gives": {
			[]Option{Delay(0), Priority(0)}, []Option{Delay(1), Priority(2)},
			settings{given: givenDelay | givenPriority},
		},
		"prefers a call's At to a type's Delay": {
			[]Option{At(moment)}, []Option{Delay(1)}, settings{at: moment, given: givenDelay},
		},
		"prefers a call's Delay to a type's At": {
			[]Option{Delay(1)}, []Option{At(moment)}, settings{delay: 1, given: givenDelay},
		},
		"joins headers of different keys": {
			[]Option{Header{"a", "c"}, Header{"b", "c"}}, []Option{Header{"b", "t"}, Header{"d", "t"}},
			settings{headers: Headers{"a": "c", "b": "c", "d": "t"}},
		},
		"leaves the type's policy to the worker": {
			[]Option{MaxAttempts(2)}, []Option{MaxAttempts(3), Timeout(4), Backoff{}},
			settings{policy: policy{maxAttempts: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := resolve(tc.call, tc.typ)
			require.NoError(t, err)
			require.Equal(t, tc.want, s)
		})
	}

	t.Run("bounds the headers of call and type together", func(t *testing.T) {
		t.Parallel()
		half := strings.Repeat("v", maxHeaders/2)
		_, err := resolve([]Option{Header{"a", half}}, []Option{Header{"b", half}})
		require.ErrorIs(t, err, ErrInvalid)
	})
	t.Run("does not change the options it reads", func(t *testing.T) {
		t.Parallel()
		call, typ := []Option{Header{"a", "c"}, Unique{Key: "c"}}, []Option{Header{"b", "t"}}
		first, err := resolve(call, typ)
		require.NoError(t, err)
		second, err := resolve(call, typ)
		require.NoError(t, err)
		require.Equal(t, first, second)
		first.headers["z"] = "later"
		first.unique.Key = "later"
		require.NotEqual(t, first, second)
	})
	t.Run("gives the call's where there is one, and the type's elsewhere", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			call, typ := drawOptions(t, "call"), drawOptions(t, "type")
			s, err := resolve(call, typ)
			require.NoError(t, err)
			c, err := resolve(call, nil)
			require.NoError(t, err)
			y, err := resolve(nil, typ)
			require.NoError(t, err)

			require.Equal(t, c.policy, s.policy)
			pick := func(got, call, typ any, given bool) {
				if !given {
					call = typ
				}
				require.Equal(t, call, got)
			}
			pick(s.priority, c.priority, y.priority, c.given&givenPriority != 0)
			pick(s.expireIn, c.expireIn, y.expireIn, c.expireIn != 0)
			pick(s.unique, c.unique, y.unique, c.unique != nil)
			pick(s.idempotency, c.idempotency, y.idempotency, c.idempotency != nil)
			timed := c.given&givenDelay != 0 || !c.at.IsZero()
			pick(s.delay, c.delay, y.delay, timed)
			pick(s.at, c.at, y.at, timed)
			require.False(t, s.delay != 0 && !s.at.IsZero(), "both Delay and At")
			for _, key := range []string{"a", "b"} {
				v, ok := c.headers[key]
				if !ok {
					v, ok = y.headers[key]
				}
				got, gotOK := s.headers[key]
				require.Equal(t, ok, gotOK)
				require.Equal(t, v, got)
			}
		})
	})
}

// drawOptions draws a valid list of options in any order.
func drawOptions(t *rapid.T, label string) []Option {
	var list []Option
	some := func(name string, o Option) {
		if rapid.Bool().Draw(t, label+" has "+name) {
			list = append(list, o)
		}
	}
	small := func(least int) int { return rapid.IntRange(least, 3).Draw(t, label) }
	if rapid.Bool().Draw(t, label+" by time") {
		some("At", At(time.Unix(int64(small(0)), 0)))
	} else {
		some("Delay", Delay(small(0)))
	}
	some("Priority", Priority(small(0)))
	some("ExpireIn", ExpireIn(10+small(1))) // above any Delay here
	some("Unique", Unique{Key: strings.Repeat("k", small(0))})
	some("Idempotency", Idempotency{Key: strings.Repeat("k", small(1))})
	some("a", Header{"a", label})
	some("b", Header{"b", label})
	some("MaxAttempts", MaxAttempts(small(0)))
	some("Timeout", Timeout(small(-1)))
	some("Backoff", Backoff{Base: time.Duration(small(0))})
	return rapid.Permutation(list).Draw(t, label+" order")
}

func TestPolicy(t *testing.T) {
	t.Parallel()

	wait := RetryFunc(func(Failure) time.Duration { return 7 })
	full := policy{
		maxAttempts: 1, timeout: NoTimeout, maxCrashes: 2, visibility: time.Second, backoff: &Backoff{Factor: 2},
	}

	t.Run("over another keeps all that it sets", func(t *testing.T) {
		t.Parallel()
		other := policy{maxAttempts: 8, timeout: 1, maxCrashes: 9, visibility: time.Minute, backoff: &Backoff{}}
		require.Equal(t, full, full.over(other))
		require.Equal(t, full, full.over(policy{}))
	})
	t.Run("over another takes what it does not set", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, full, policy{}.over(full))
		require.Equal(t, policy{maxAttempts: 5, timeout: NoTimeout, maxCrashes: 2, visibility: time.Second, backoff: full.backoff},
			policy{maxAttempts: 5}.over(full))
	})
	t.Run("with a backoff hides the retry function behind it", func(t *testing.T) {
		t.Parallel()
		p := policy{backoff: &Backoff{}}.over(policy{retry: wait})
		require.NotNil(t, p.backoff)
		require.Nil(t, p.retry)
	})
	t.Run("with a retry function hides the backoff behind it", func(t *testing.T) {
		t.Parallel()
		p := policy{retry: wait}.over(policy{backoff: &Backoff{}})
		require.Nil(t, p.backoff)
		require.NotNil(t, p.retry)
	})
	t.Run("without either takes both of what is behind it", func(t *testing.T) {
		t.Parallel()
		require.NotNil(t, policy{maxAttempts: 1}.over(policy{retry: wait}).retry)
	})
	t.Run("of a registration may have a retry function", func(t *testing.T) {
		t.Parallel()
		p, err := handlePolicy([]HandleOption{wait, MaxAttempts(2)})
		require.NoError(t, err)
		require.Equal(t, time.Duration(7), p.retry(Failure{}))
		require.Equal(t, 2, p.maxAttempts)
	})
	for name, list := range map[string][]HandleOption{
		"nil":                       {nil},
		"a nil pointer":             {(*MaxAttempts)(nil)},
		"a nil retry function":      {RetryFunc(nil)},
		"two retry functions":       {wait, wait},
		"both ways to wait":         {Backoff{}, wait},
		"both, the other way round": {wait, Backoff{}},
		"a value that is too great": {MaxCrashes(256)},
		"one option twice":          {Timeout(1), Timeout(1)},
	} {
		t.Run("of a registration must not have "+name, func(t *testing.T) {
			t.Parallel()
			p, err := handlePolicy(list)
			require.ErrorIs(t, err, ErrInvalid)
			require.Zero(t, p.maxCrashes)
			require.Nil(t, p.retry)
		})
	}
	t.Run("of a type is the policies among its options", func(t *testing.T) {
		t.Parallel()
		p, err := typePolicy([]Option{Priority(1), MaxAttempts(3), Header{"k", "v"}, Timeout(4)})
		require.NoError(t, err)
		require.Equal(t, policy{maxAttempts: 3, timeout: 4}, p)
	})
	t.Run("of a type does not mind what its zero value says about the queue", func(t *testing.T) {
		t.Parallel()
		p, err := typePolicy([]Option{At{}, Delay(-1), MaxAttempts(3)})
		require.NoError(t, err)
		require.Equal(t, 3, p.maxAttempts)
	})
	t.Run("of a type that is wrong says where it is from", func(t *testing.T) {
		t.Parallel()
		for _, o := range []Option{nil, MaxAttempts(-1)} {
			_, err := typePolicy([]Option{o})
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, "JobOptions")
		}
	})
}

func TestMillis(t *testing.T) {
	t.Parallel()

	t.Run("of a duration are rounded up", func(t *testing.T) {
		t.Parallel()
		for d, want := range map[time.Duration]int64{
			0: 0, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, -1: 0, -1_000_000: -1, -1_500_000: -1,
			math.MaxInt64: math.MaxInt64/1_000_000 + 1, math.MinInt64: math.MinInt64 / 1_000_000,
		} {
			require.Equal(t, want, ceilMillis(d), "%d ns", d)
		}
	})
	t.Run("are never early and less than one late", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			d := time.Duration(rapid.Int64Range(0, int64(maxWait)).Draw(t, "d"))
			late := time.Duration(ceilMillis(d))*time.Millisecond - d
			require.GreaterOrEqual(t, late, time.Duration(0))
			require.Less(t, late, time.Millisecond)
		})
	})
}
