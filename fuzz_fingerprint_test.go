package pawl

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// FuzzFingerprint: a number or an id that stands for itself does not tell one
// kind of error from another, whatever else is in the text.
func FuzzFingerprint(f *testing.F) {
	seed := func(before, after string, a, b uint64, id, id2 string) {
		x, y := uuid.MustParse(id), uuid.MustParse(id2)
		f.Add(before, after, a, b, x[:], y[:])
	}
	const plain, other = "01977420-dc7b-71c8-8001-23456789abcd", "5f0c1f7e-93a4-4d7e-9c1b-0a2b3c4d5e6f"
	seed("user", "not found", 7, 123456789, plain, other)
	seed("", "", 0, 1<<64-1, plain, other)
	seed("dial tcp [::1]", "refused", 80, 8080, plain, other)
	seed("a@b.c said - #", "#, 5", 1, 10, plain, other)
	seed("at 2026-02-03T04:05:06.789Z", "\x00\xff ٣", 99, 100, plain, other)
	// Groups of four without a digit, and of letters before digits, are words
	// where they stand alone.
	seed("job", "", 1, 2, plain, "01977420-beef-41c8-abcd-0123456789ab")
	seed("job", "", 1, 2, plain, "01977420-abc1-41c8-ab12-0123456789ab")
	seed("job", "", 1, 2, plain, "ffffffff-ffff-ffff-ffff-ffffffffffff")
	seed("job", "", 1, 2, plain, "00000000-0000-0000-0000-000000000000")
	f.Fuzz(func(t *testing.T, before, after string, a, b uint64, id, id2 []byte) {
		var x, y uuid.UUID
		copy(x[:], id)
		copy(y[:], id2)
		number := func(n uint64) string { return strconv.FormatUint(n, 10) }
		for _, quote := range []string{"  ", `""`, "()", "[]", "''"} {
			text := func(what string) string { return before + " " + quote[:1] + what + quote[1:] + " " + after }
			equal := func(one, two string) {
				if fingerprint("kind", text(one)) != fingerprint("kind", text(two)) {
					require.Equal(t, shape(text(one)), shape(text(two)), "of %s and %s", one, two)
				}
			}
			equal(number(a), number(b))
			equal(x.String(), y.String())
			equal(strings.ToUpper(x.String()), y.String())
		}
		require.NotEqual(t, fingerprint("kind", before), fingerprint("kind2", before), "kinds are told apart")
		require.Regexp(t, "^[0-9a-f]{16}$", fingerprint(after, before))
	})
}
