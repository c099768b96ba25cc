// Package cron computes the times of recurring schedules: those of a crontab
// line in a time zone, and those of a fixed grid.
//
// What a field of a line says is read by github.com/robfig/cron, one field at
// a time; when a line fires, over clock changes too, is decided here. See Next
// for the rules.
package cron

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// A Line is a crontab line that has been read: which minutes, hours, days,
// months and weekdays it names, a bit each. It never changes, so that
// goroutines may share one.
type Line struct {
	minutes, hours, days, months, weekdays uint64

	// everyHour: the hour is "*", and every real occurrence fires.
	everyHour bool
	// eitherDay: the day of the month and that of the week are both
	// restricted, and a day that is one of the two is enough.
	eitherDay bool
}

// MaxLine is the greatest length of a line in bytes. One that writes out every
// value of every field by its number has less than half of it.
const MaxLine = 1024

const example = `write "minute hour day-of-month month day-of-week", as "0 2 * * *"`

// shortcuts are the lines of crontab(5) that have a name.
var shortcuts = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse reads a line of five fields, or one of the shortcuts. White space of
// any kind is between them. An error names the field, says what stood there,
// and what to write instead; it is short whatever the line is.
func Parse(line string) (*Line, error) {
	if len(line) > MaxLine {
		return nil, fmt.Errorf("the line has %d bytes, and may have %d: %s", len(line), MaxLine, example)
	}
	texts := strings.Fields(line)
	if len(texts) == 0 {
		return nil, errors.New("the line is empty: " + example)
	}
	if full, ok := shortcuts[texts[0]]; ok && len(texts) == 1 {
		texts = strings.Fields(full)
	}
	if err := misplaced(texts); err != nil {
		return nil, err
	}
	if len(texts) != len(fields) {
		count := fmt.Sprintf("%d fields", len(texts))
		if len(texts) == 1 {
			count = "1 field"
		}
		return nil, fmt.Errorf("the line has %s, not 5: %s", count, example)
	}
	var sets [len(fields)]uint64
	for i := range fields {
		set, err := fields[i].parse(texts[i])
		if err != nil {
			return nil, err
		}
		sets[i] = set
	}
	l := &Line{
		minutes: sets[0] &^ star, hours: sets[1] &^ star, days: sets[2] &^ star, months: sets[3] &^ star, weekdays: sets[4] &^ star,
		everyHour: sets[1]&star != 0,
		eitherDay: restricted(texts[2]) && restricted(texts[4]),
	}
	if !l.fires() {
		return nil, fmt.Errorf("the line never fires: day of month %s never comes in month %s", shown(texts[2]), shown(texts[3]))
	}
	return l, nil
}

// restricted is crontab(5)'s word for a day field that does not begin with a
// star: "*/2" is not restricted, and narrows the other day field.
func restricted(text string) bool { return text[0] != '*' && text[0] != '?' }

// misplaced is the error of a line that means something, but is no line of
// five fields.
func misplaced(texts []string) error {
	first := texts[0]
	name, zone, isZone := strings.Cut(first, "=")
	rest := strings.Join(texts[1:], " ")
	switch {
	case isZone && (name == "TZ" || name == "CRON_TZ"):
		return fmt.Errorf("%s stands before the line: write CronIn(%s, %s)", shown(first), shown(strings.Trim(zone, `"'`)), shown(rest))
	case first == "@every":
		return fmt.Errorf("%s is no crontab line: write Every with that time, as Every(15*time.Minute)", shown(first+" "+rest))
	case first == "@reboot":
		return errors.New("@reboot is no time: enqueue the job where the program starts")
	case shortcuts[first] != "":
		return fmt.Errorf("%s stands alone, and %s follows it: write one of the two", first, shown(rest))
	case first[0] == '@':
		known := slices.Sorted(maps.Keys(shortcuts))
		return fmt.Errorf("%s is not known: write five fields, or one of %s", shown(first), strings.Join(known, ", "))
	case len(texts) == len(fields)+1:
		return errors.New("the line has six fields: write five, without seconds, as \"0 2 * * *\"; " +
			"for less than a minute, Every(30*time.Second)")
	}
	return nil
}

// shown is a text as an error quotes it: it may be of any length, and of any
// bytes.
func shown(text string) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}

// longest is the length of a month in the year that has most of it.
func longest(month time.Month) int { return daysIn(2000, month) }

// fires tells whether there is a day that the line names. On every date all
// weekdays come, on 29 February too, so that the weekdays cannot exclude it.
func (l *Line) fires() bool {
	if l.eitherDay {
		return true
	}
	first := bits.TrailingZeros64(l.days)
	for month := time.January; month <= time.December; month++ {
		if has(l.months, int(month)) && first <= longest(month) {
			return true
		}
	}
	return false
}
