package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func TestTheAPIChargesAKeyOnce(t *testing.T) {
	t.Parallel()
	g := &gateway{known: map[string]charge{}, charges: map[int]int{}}
	order := Charge{Order: 7, Cents: 100}
	first, fits := g.charge("k", order)
	require.True(t, fits)
	again, fits := g.charge("k", order)
	require.True(t, fits)
	require.Equal(t, first, again)
	require.Equal(t, 1, g.charges[7])
	require.Equal(t, 1, g.repeats)

	_, fits = g.charge("k", Charge{Order: 7, Cents: 200})
	require.False(t, fits, "a key is of one charge")
	_, fits = g.charge("", order)
	require.True(t, fits)
	_, fits = g.charge("", order)
	require.True(t, fits)
	require.Equal(t, 3, g.charges[7], "without a key each request is a charge")
	require.EqualValues(t, 300, g.cents)
}

func TestWhatAnAnswerOfTheAPIMeans(t *testing.T) {
	t.Parallel()
	for code, permanent := range map[int]bool{
		http.StatusServiceUnavailable: false, http.StatusInternalServerError: false, http.StatusTooManyRequests: false,
		http.StatusConflict: false, http.StatusPaymentRequired: true, http.StatusUnprocessableEntity: true,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Idempotency-Key") == "k" {
				w.WriteHeader(code)
			}
		}))
		_, err := newPaymentAPI(server.URL).charge(t.Context(), Charge{Order: 1, Cents: 2}, "k")
		server.Close()
		require.ErrorContains(t, err, http.StatusText(code))
		require.Equal(t, permanent, pawl.IsPermanent(err), code)
	}
}
