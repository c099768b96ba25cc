package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
)

const outputText = `To a terminal pawl writes text for people. Into a pipe or a file, or with --json,
it writes JSON: one object on each line, so that a list of any length can be
read as it comes. --text writes text whatever it goes to. Errors, questions and
progress go to standard error, always as text.

Names are in snake_case and stay as they are; new ones may be added. Every
object of a kind has every one of its fields: what is not known, or is not there,
is null. Times are RFC 3339 in UTC, durations are in seconds, ids are text.

A payload is "payload" if it is UTF-8, as it was enqueued, so a JSON one is JSON
inside a string (jq: .payload | fromjson), and otherwise "payload_base64".
Results likewise. In other texts what is no UTF-8 becomes U+FFFD.

Nothing that comes out of Redis reaches the terminal unseen: control characters,
also those that change the direction of text, are written as escapes, as \x1b
and \u202e, in both forms.

In text, ages are in their largest unit, rounded down, by the clock of Redis.`

// line writes a value as one line of JSON.
func (a *app) line(v any) error {
	text, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// marshal is JSON that a terminal shows as it is: encoding/json escapes the control
// characters of ASCII, and this the others, with all that does not print.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	var safe []byte
	for text := bytes.TrimSpace(b.Bytes()); len(text) > 0; {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f || shown(r):
			safe = append(safe, text[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
		text = text[size:]
	}
	return safe, nil
}

// asJSON reports whether the output is for machines.
func (a *app) asJSON() bool { return a.flags.json || !a.flags.text && !a.outTerminal }

// moment is a time in JSON: UTC, to the millisecond; null for the zero time.
type moment time.Time

// MarshalJSON is one of json.Marshaler.
func (m moment) MarshalJSON() ([]byte, error) {
	t := time.Time(m)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// optional is nil for a zero value, which is null in JSON.
func optional[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// idText is an id, or nil for the zero one.
func idText(id uuid.UUID) *string {
	if id == (uuid.UUID{}) {
		return nil
	}
	text := id.String()
	return &text
}

// bytesOf are bytes as text, or in base64 if they are none; both nil for nil.
func bytesOf(b []byte) (text, coded *string) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	s := base64.StdEncoding.EncodeToString(b)
	return nil, &s
}
