package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2.0, median([]float64{9, 1, 2}))
	require.Equal(t, 3.0, median([]float64{4, 9, 1, 2}))
	require.Equal(t, 7.0, median([]float64{7}))
	require.True(t, math.IsNaN(median(nil)))
	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "the order of the rounds is kept")
}

func TestPercentileIsOneOfTheValues(t *testing.T) {
	t.Parallel()
	var values []int64
	for i := int64(1000); i > 0; i-- {
		values = append(values, i)
	}
	for percent, want := range map[float64]float64{0: 1, 50: 500, 99: 990, 99.9: 999, 100: 1000} {
		require.Equal(t, want, percentile(values, percent), "p%v", percent)
	}
	require.Equal(t, 5.0, percentile([]int64{5}, 50))
	require.Equal(t, -3.0, percentile([]int64{5, -3}, 0))
	require.True(t, math.IsNaN(percentile(nil, 50)))
}

func TestSlowSystemsGetFewerJobs(t *testing.T) {
	t.Parallel()
	require.Equal(t, 100_000, scale(100_000, 10_000, 30*time.Second), "10 s are not too long")
	require.Equal(t, 800, scale(100_000, 100, 30*time.Second), "8 s instead of 1,000")
	require.Equal(t, 8_000, scale(100_000, 1_100, 30*time.Second), "a round number")
	require.Equal(t, 1, scale(100_000, 0.01, 30*time.Second), "one job at least")
	for n, want := range map[int]int{1: 1, 9: 9, 10: 10, 19: 10, 99_999: 90_000} {
		require.Equal(t, want, roundDown(n))
	}
}
