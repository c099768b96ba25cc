package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// visible is a text in one line that a terminal obeys nothing of: what does not print, line
// ends among it, is written as Go writes it, and so are bytes that are no UTF-8.
func visible(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case shown(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// shown reports whether a letter is seen, and says nothing to a terminal. To IsPrint, which
// knows of controls and of what changes the direction, letters that are there to be not seen
// are letters: fillers, variation selectors, the blank of Braille. Two names that differ in
// one of them would look the same, and any text can be hidden in them.
func shown(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// visibleLines is visible of each line, for what is a text of several.
func visibleLines(s string) []string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range lines {
		lines[i] = visible(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// age is how long something takes, in the largest unit that fits: of what waits for hours
// the seconds do not matter.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, d)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return count(int64(d/(24*time.Hour))) + "d"
}

// lasting is how long something takes, to the second: 90s are 1m30s, and an hour is 1h.
func lasting(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ago is an age of a time that may not be known.
func (s *session) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(s.now().Sub(t)) + " ago"
}

// in is when a time will come.
func (s *session) in(t time.Time) string {
	switch d := t.Sub(s.now()); {
	case d > 10*365*24*time.Hour: // a Duration ends after 292 years
		return "on " + t.UTC().Format(time.DateOnly)
	case d > 0:
		return "in " + age(d)
	}
	return "now"
}

// dated is a time and how far away it is.
func (s *session) dated(t time.Time) string {
	text := t.UTC().Format("2006-01-02 15:04:05Z")
	switch d := t.Sub(s.now()); {
	case d > 100*365*24*time.Hour: // a Duration ends after 292 years
		return text
	case d > 0:
		return text + " (in " + age(d) + ")"
	}
	return text + " (" + s.ago(t) + ")"
}

// count is a number with its thousands apart.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// some is a number of things: "1 job", "2 jobs".
func some[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(int64(n)) + " " + thing + "s"
}

// size is a number of bytes.
func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
