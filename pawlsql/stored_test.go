package pawlsql

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// through is what becomes of options on their way through the table.
func through(t *testing.T, age time.Duration, opts ...pawl.Option) []pawl.Option {
	t.Helper()
	s, err := store(opts)
	require.NoError(t, err)
	text, err := s.encode()
	require.NoError(t, err)
	read, err := decodeStored(text)
	require.NoError(t, err)
	require.Equal(t, s, read)
	return read.options(age)
}

// Every option that pawl has comes back as it was.
func TestOptionsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	century := 36525 * day
	for name, o := range map[string]pawl.Option{
		"a delay": pawl.Delay(time.Hour), "a delay of 1 ns": pawl.Delay(1), "the longest delay": pawl.Delay(century),
		"a time":      pawl.At(time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)),
		"a past time": pawl.At(time.Unix(0, 1).UTC()), "the first time": pawl.At(time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)),
		"the last time": pawl.At(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)),
		"a priority":    pawl.Priority(9), "an expiry": pawl.ExpireIn(time.Minute), "the longest expiry": pawl.ExpireIn(century),
		"a header": pawl.Header{Key: "trace", Value: "é\x00\n\"<&>\u2028🐾"}, "an empty header": pawl.Header{Key: "a"},
		"a key": pawl.Unique{Key: "order:7", For: day}, "a key of the arguments": pawl.Unique{For: century},
		"a key until started": pawl.Unique{Key: "é\x00", Until: pawl.UntilStarted, For: day + 1},
		"what is kept":        pawl.Retain(1), "what is kept the longest": pawl.Retain(century),
		"attempts": pawl.MaxAttempts(10_000), "a timeout": pawl.Timeout(1), "no timeout": pawl.Timeout(pawl.NoTimeout),
		"crashes": pawl.MaxCrashes(255), "a visibility timeout": pawl.VisibilityTimeout(100 * time.Millisecond),
		"the default backoff": pawl.Backoff{}, "a backoff": pawl.Backoff{Base: 1, Factor: 1.0000000001, Max: century, Jitter: pawl.JitterNone},
		"a backoff of steps": pawl.Backoff{Steps: []time.Duration{0, time.Second, century}, Jitter: pawl.JitterFull},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, want, err := pawl.Config{}.Prepare(t.Context(), "q", pawl.Raw{Name: "kind"}, o)
			require.NoError(t, err)
			require.Equal(t, []pawl.Option{o}, want)
			require.Equal(t, want, through(t, 0, want...))
		})
	}
	all := []pawl.Option{pawl.Delay(1), pawl.Priority(1), pawl.ExpireIn(time.Hour), pawl.Header{Key: "a"}, pawl.Header{Key: "b", Value: "2"}, pawl.Unique{For: day}, pawl.Retain(time.Second),
		pawl.MaxAttempts(1), pawl.Timeout(2), pawl.MaxCrashes(3), pawl.VisibilityTimeout(time.Second), pawl.Backoff{Factor: 2}}
	require.Equal(t, all, through(t, 0, all...))
	require.Empty(t, through(t, 0))
	zoned := time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600))
	require.True(t, time.Time(through(t, 0, pawl.At(zoned))[0].(pawl.At)).Equal(zoned))
}

// Delay and ExpireIn have begun to count when the row was inserted.
func TestOptionsOfAnOldRow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		age         time.Duration
		given, want []pawl.Option
	}{
		{time.Minute, []pawl.Option{pawl.Delay(time.Hour)}, []pawl.Option{pawl.Delay(59*time.Minute + time.Millisecond)}},
		{time.Hour, []pawl.Option{pawl.Delay(time.Hour)}, []pawl.Option{pawl.Delay(time.Millisecond)}},
		{2 * time.Hour, []pawl.Option{pawl.Delay(time.Hour)}, nil},
		{-time.Hour, []pawl.Option{pawl.Delay(time.Minute)}, []pawl.Option{pawl.Delay(time.Minute)}},
		{time.Minute, []pawl.Option{pawl.ExpireIn(time.Hour)}, []pawl.Option{pawl.ExpireIn(59*time.Minute + time.Millisecond)}},
		{time.Hour + time.Millisecond, []pawl.Option{pawl.ExpireIn(time.Hour)}, []pawl.Option{pawl.ExpireIn(time.Millisecond)}},
		{2 * time.Hour, []pawl.Option{pawl.Delay(59 * time.Minute), pawl.ExpireIn(time.Hour)}, []pawl.Option{pawl.ExpireIn(time.Millisecond)}},
		{time.Hour, []pawl.Option{pawl.Unique{For: 48 * time.Hour}, pawl.Timeout(time.Minute)}, []pawl.Option{pawl.Unique{For: 48 * time.Hour}, pawl.Timeout(time.Minute)}},
	} {
		got := through(t, tc.age, tc.given...)
		require.Equal(t, tc.want, got)
		_, _, err := pawl.Config{}.Prepare(t.Context(), "q", pawl.Raw{Name: "kind"}, got...)
		require.NoError(t, err, "pawl takes what is left")
	}
}

func TestOptionsThatARowCannotHaveAreRefused(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, o := range []pawl.Option{pawl.Unique{}, pawl.Unique{Key: "k", For: day - 1}, pawl.Unique{For: day, OnDuplicate: pawl.RejectDuplicate},
		pawl.Unique{For: day, OnDuplicate: pawl.ReplaceWaiting}, pawl.Unique{For: day, OnDuplicate: pawl.RunLatestAfter},
		pawl.Unique{Key: "\xff", For: day}, pawl.Idempotency{Key: "\xff"}, struct{ pawl.Priority }{3}} {
		_, err := store([]pawl.Option{o})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

func TestOptionsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null", "{}", "[]", "7", "{", `{"v":2}`, `{"v":0}`, `{"v":1,"new":3}`, `{"v":1,"delay":7}`, `{"v":1,"delay":"7"}`, `{"v":1,"at":"now"}`, `{"v":"1"}`} {
		_, err := decodeStored(text)
		require.Error(t, err, text)
	}
	_, err := decodeStored(`{"v":1}`)
	require.NoError(t, err)
}

func TestErrorTextsAreWhatAnyDatabaseKeeps(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\uFFFDb\uFFFD", errorText(textError("a\x00b\xff")))
	long := errorText(textError("a" + strings.Repeat("é", 1500)))
	require.Equal(t, "a"+strings.Repeat("é", 999)+"…", long)
}

type textError string

func (e textError) Error() string { return string(e) }

// Follow-ups travel with a row, and theirs with them, whatever their Unique says.
func TestFollowUpsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	last := pawl.Then{Args: pawl.Raw{Name: "last"}, Options: []pawl.Option{pawl.Unique{OnDuplicate: pawl.RunLatestAfter}, pawl.Idempotency{Key: "once", Window: time.Hour}}}
	next := pawl.Then{Args: pawl.Raw{Name: "next", Payload: []byte("\xff\x00")}, Options: []pawl.Option{pawl.Delay(time.Minute), pawl.Unique{Key: "k"}, last, pawl.MaxAttempts(2)}}
	given := []pawl.Option{pawl.Unique{For: 24 * time.Hour}, next, last}
	raw, want, err := pawl.Config{}.Prepare(t.Context(), "q", pawl.Raw{Name: "kind"}, given...)
	require.NoError(t, err)
	got := through(t, time.Hour, want...)
	again, options, err := pawl.Config{}.Prepare(t.Context(), "q", raw, got...)
	require.NoError(t, err)
	require.Equal(t, raw, again)
	require.Equal(t, want, options, "their delays count from the acknowledgement, however old the row is")

	_, err = store([]pawl.Option{pawl.Then{Args: pawl.Raw{Name: "k"}, Options: []pawl.Option{pawl.Unique{Key: "\xff"}}}})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = store([]pawl.Option{pawl.Then{Args: &pawl.Raw{Name: "x"}}})
	require.ErrorIs(t, err, pawl.ErrInvalid)
}
