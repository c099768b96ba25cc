package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPayloadsHaveTheirSize(t *testing.T) {
	t.Parallel()
	for _, number := range []int{0, 9, 10, 999_999} {
		for _, bytes := range []int{payload, 10_000} {
			p := newParcel(number, now(), bytes)
			text := p.encode()
			require.Len(t, text, bytes)
			var back parcel
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, p, back)
		}
	}
	require.Empty(t, newParcel(1, now(), 10).Pad, "no shorter than what it must say")
}

func TestSlotsAreShared(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int{25, 25, 25, 25}, split(100, 4))
	require.Equal(t, []int{3, 3, 2, 2}, split(10, 4))
	require.Equal(t, []int{1}, split(1, 4), "none without a slot")
	require.Equal(t, []int{7}, split(7, 1))
}
