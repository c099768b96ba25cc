package main

import (
	"math"
	"slices"
)

// median of an even number is the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is by nearest rank: one of the values. 0 is the least, 100 the most.
func percentile(values []int64, percent float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	// 99.9% of 1,000 is a little more than 999 in binary.
	rank := int(math.Ceil(percent*float64(len(sorted))/100 - 1e-9))
	return float64(sorted[min(max(rank, 1), len(sorted))-1])
}

// roundDown keeps the first digit.
func roundDown(n int) int {
	unit := 1
	for n/unit >= 10 {
		unit *= 10
	}
	return n / unit * unit
}
