package chaos

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// perSecond is how many jobs a soak enqueues.
const perSecond = 40

// TestSoak is a mixed load with a fault every few seconds for as long as CHAOS_SOAK
// says. By default it is so short that it only shows that it runs: `make soak`
// gives it half an hour. Nothing is lost or stuck, a job runs again only where a
// lease was lost, and what processes take up stays flat.
func TestSoak(t *testing.T) {
	t.Parallel()
	window := 6 * time.Second
	if text := os.Getenv("CHAOS_SOAK"); text != "" {
		var err error
		window, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	opts := Options{Seed: max(1, *seedFlag), Jobs: max(1, int(window.Seconds()*0.8*perSecond)), Window: window, Wide: true,
		Visibility: 2 * time.Second, Sample: max(100*time.Millisecond, window/300), Patience: time.Minute, Dir: os.Getenv("CHAOS_DIR")}
	opts.Plan = soakPlan(opts.Seed, 3, opts.Visibility, window)
	result := Run(t, opts)
	t.Logf("soak of %v: %s", window, result.summary())
	t.Logf("\n| process | figure | first third | last third | most |\n|---|---|---|---|---|\n%s", strings.Join(lines(result.Trends), "\n"))
	result.requireClean(t, opts.Seed)
	require.NotEmpty(t, result.Trends)
	for _, trend := range result.Trends {
		if trend.rises && window >= time.Minute { // or it is the start that is seen
			t.Errorf("rises: %s", trend)
		}
	}
}

func lines(all []Trend) (texts []string) {
	for _, t := range all {
		texts = append(texts, t.String())
	}
	return texts
}

func TestAFigureThatRisesIsSeen(t *testing.T) {
	t.Parallel()
	took := func(n int, of func(i int) int64) (samples []Sample) {
		for i := range n {
			samples = append(samples, Sample{int64(i), map[string]int64{"goroutines": of(i), "unknown": 1}})
		}
		return samples
	}
	for name, c := range map[string]struct {
		samples []Sample
		rises   bool
	}{
		"flat":                 {took(300, func(i int) int64 { return 40 + int64(i%9) }), false},
		"one goroutine a step": {took(300, func(i int) int64 { return 40 + int64(i) }), true},
		"one in five steps":    {took(300, func(i int) int64 { return 40 + int64(i/5) }), true},
		"it falls":             {took(300, func(i int) int64 { return 400 - int64(i) }), false},
		"one spike":            {took(300, func(i int) int64 { return 40 + 1000*int64(i/299) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := trends("p", c.samples)
			require.Len(t, got, 1)
			require.Equal(t, c.rises, got[0].rises, got[0])
		})
	}
	require.Empty(t, trends("p", took(2, func(int) int64 { return 1 })))
}

func TestASoakSparesItsVeterans(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	var all time.Duration
	for _, s := range soakPlan(1, 3, time.Second, 30*time.Minute) {
		all += s.After
		seen[s.Kind] = true
		require.NotEqual(t, "producer", s.Kind)
		if s.Kind == "kill" || s.Kind == "term" {
			require.Less(t, s.Target, 2)
		}
	}
	require.Len(t, seen, len(kinds)-1, "each fault comes but one")
	require.Greater(t, all, 29*time.Minute)
	require.LessOrEqual(t, all, 30*time.Minute)
}
