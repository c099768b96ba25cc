package record_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// The files in testdata were made from the layout's description by another
// program, and there is no flag that rewrites them: bytes that differ are bytes
// that a running fleet cannot read.
func golden() map[string]*record.Record {
	return map[string]*record.Record{
		"plain": {Kind: "welcome", Payload: []byte(`{"user_id":42}`)},
		"full":  fullRecord(),
		"dead": {
			Started:       true,
			Kind:          "charge",
			Attempts:      1,
			Timeout:       -1,
			Failures:      []record.Failure{{Attempt: 1, At: 1750000001000, Took: 20 * time.Millisecond, Text: "card declined"}},
			FirstFailedAt: 1750000001000,
			Dead:          &record.PostMortem{Reason: "permanent", Error: "card declined", Worker: "host-1", Build: "v1", At: 1750000001020, MaxAttempts: 3},
		},
	}
}

func fullRecord() *record.Record {
	return &record.Record{
		Priority: 7, Started: true, Crashes: 2, MaxCrashes: 5,
		Visibility: 45 * time.Second, Due: 1750000100000, LongHead: true,
		Kind:    "invoice.send",
		Payload: []byte(`{"id":42}`),
		Headers: map[string]string{"trace": "4bf92f35", "a": ""},

		Attempts: 3, MaxAttempts: 300, Timeout: 90 * time.Second,
		Backoff: &record.Backoff{
			Base: time.Second, Max: time.Hour, Factor: 1.5, Jitter: 2,
			Steps: []time.Duration{time.Second, 500 * time.Millisecond},
		},
		ExpireIn: 24 * time.Hour, Since: 1750000000000,
		Unique:      &record.Unique{Key: "user:42", Until: 1, For: 10 * time.Minute, OnDuplicate: 2},
		Idempotency: &record.Idempotency{Key: "pay:42", Window: 24 * time.Hour},
		Schedule:    "nightly", Tick: 1750000000000,
		Retain: time.Hour, Then: []record.Then{{How: "d 5", Record: []byte{1, 0, 1, 'k', 0}}},

		Failures: []record.Failure{
			{Attempt: 1, At: 1750000001000, Took: 1234567, Text: strings.Repeat("x", 130)},
			{Attempt: 2, At: 1750000009000, Text: "dial tcp: refused"},
		},
		FirstFailedAt: 1750000001000, Redrives: 1, Snoozes: 4, PutBacks: 6, UnknownSince: 1750000000500,
		Dead: &record.PostMortem{
			Reason: "exhausted", Error: "timeout", Stack: "main.go:1",
			Worker: "host-1", Build: "v1.2.3", At: 1750000099000, MaxAttempts: 8,
		},
		End:      &record.End{State: "done", At: 1750000099000, Result: []byte("7"), HasResult: true},
		Progress: &record.Progress{Percent: 62.5, Note: "half"},
		Extra:    []record.Field{{Tag: 200, Value: []byte{1, 255}}, {Tag: 255}},
	}
}

func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	for name, r := range golden() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := readHex(t, name)
			require.Equal(t, hex.Dump(want), hex.Dump(r.Append(nil)))
			got, err := record.Decode(want)
			require.NoError(t, err)
			require.Equal(t, r, got)
		})
	}
}

// A field that is added is added to fullRecord too, or the golden bytes, the
// truncations and the round trip would not cover it.
func TestFullRecordLeavesNoFieldOut(t *testing.T) {
	t.Parallel()
	requireAllSet(t, "Record", reflect.ValueOf(*fullRecord()))
}

func requireAllSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	require.False(t, v.IsZero(), path)
	switch v.Kind() {
	case reflect.Pointer:
		requireAllSet(t, path, v.Elem())
	case reflect.Slice:
		requireAllSet(t, path+"[0]", v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			requireAllSet(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

// readHex reads hexadecimal digits in which # starts a comment.
func readHex(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	require.NoError(t, err)
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		data, _, _ := strings.Cut(line, "#")
		for word := range strings.FieldsSeq(data) {
			digits.WriteString(word)
		}
	}
	b, err := hex.DecodeString(digits.String())
	require.NoError(t, err)
	return b
}
