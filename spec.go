package pawl

import (
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/cron"
)

// Spec says when a schedule fires. It is text, which its String returns, so
// that any worker can compute the next time. Cron, CronIn and Every make one;
// the zero Spec is none. Specs are plain values: they can be compared, and
// used by many goroutines.
//
// None of the three fails. What they were given is checked where the Spec is
// used, and by Validate; an error there is an ErrInvalid.
type Spec struct {
	kind specKind
	// zone and line are those of Cron and CronIn.
	zone, line string
	// every is that of Every.
	every time.Duration
}

type specKind uint8

const (
	cronSpec specKind = iota + 1
	everySpec
)

// Cron is a standard five-field crontab line in UTC. "@daily" and the like
// work. A wrong line is an error of Validate and of Schedule, naming the field.
//
// The fields are minute (0 to 59), hour (0 to 23), day of month (1 to 31),
// month (1 to 12, or jan to dec) and day of week (0 to 7, or sun to sat; 0 and
// 7 are Sunday), each "*", a value, a range (1-5), either with a step (*/15,
// 1-5/2), or a list of these (1,3,5-7). A step after a single value, as 5/15,
// counts from it to the greatest; "?" is "*". A line fires on days that are in
// both day fields; if neither begins with "*", on days that are in one of the
// two, as crontab(5) has it. The short lines are @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually. A line that never fires, as one
// for 30 February, is wrong too. There are no seconds: use Every.
func Cron(line string) Spec { return CronIn("UTC", line) }

// CronIn is Cron in a time zone. A time that a clock change skips fires when
// the gap ends; one that comes twice fires once, unless the hour is "*".
//
// So "30 2 * * *" in Europe/Berlin fires once on each day: at 03:00 on the day
// on which 02:30 is skipped, and at the first of the two on the day on which
// it comes twice. With "*" as the hour, or "*/1", it is the real time that
// counts: "*/30 * * * *" fires every half hour, whatever the clock does. Any
// other hour is one of the day, "*/2" and "0-23" too.
//
// The zone is a name of the IANA database, as "Europe/Berlin". "Local" is
// refused, since every worker has to compute the same time. The zones are
// those of the machine, or of time/tzdata, as the process first loaded them:
// workers that run with different ones may disagree where the rules of a zone
// were changed.
func CronIn(zone, line string) Spec {
	return Spec{kind: cronSpec, zone: zone, line: tidyLine(line)}
}

// Every fires on a fixed grid anchored at the server's time of the schedule's
// first registration, kept when the spec changes, forgotten by Unschedule:
// runs do not move it, and neither does a restart. At least 1 s, at most 100
// years, in whole milliseconds.
func Every(d time.Duration) Spec { return Spec{kind: everySpec, every: d} }

// The words of a Spec's text, which is stored in Redis.
const (
	everyWord = "every "
	cronWord  = "cron "
	zoneWord  = " in "
)

// tidyLine leaves one space between the fields, so that a line has one text.
// What is too long for a line stays as it is, to be refused.
func tidyLine(line string) string {
	if len(line) > cron.MaxLine {
		return line
	}
	return strings.Join(strings.Fields(line), " ")
}

// String is the text that people see and Redis keeps, as "every 15m0s" or
// "cron 0 2 * * * in Europe/Berlin".
func (s Spec) String() string {
	switch s.kind {
	case everySpec:
		return everyWord + s.every.String()
	case cronSpec:
		return cronWord + s.line + zoneWord + s.zone
	}
	return "no spec"
}

// parseSpec reads what String wrote. It does not ask whether a time zone is
// known here, so that what another machine stored can at least be shown.
func parseSpec(text string) (Spec, error) {
	if rest, ok := strings.CutPrefix(text, everyWord); ok {
		d, err := time.ParseDuration(rest)
		if err != nil {
			return Spec{}, invalidf("the spec %.80q has no duration as 15m0s or 36h", text)
		}
		s := Every(d)
		if err := s.check(); err != nil {
			return Spec{}, err
		}
		return s, nil
	}
	rest, ok := strings.CutPrefix(text, cronWord)
	at := strings.LastIndex(rest, zoneWord)
	if !ok || at < 0 {
		return Spec{}, invalidf("the spec %.80q is not known: it is \"every <duration>\" or \"cron <line> in <zone>\"", text)
	}
	s := CronIn(rest[at+len(zoneWord):], rest[:at])
	if _, err := cron.Parse(s.line); err != nil {
		return Spec{}, s.wrong(err)
	}
	if err := cron.CheckZone(s.zone); err != nil {
		return Spec{}, s.wrong(err)
	}
	return s, nil
}
