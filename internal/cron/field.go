package cron

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"

	robfig "github.com/robfig/cron/v3"
)

// star is the bit that the library adds to a set that a "*", a "?" or a "*/1"
// made.
const star uint64 = 1 << 63

// A field is one of the five of a line.
type field struct {
	name  string
	takes string // what may stand there
	count int    // of its values; a greater step is a mistake
	// The library is given each field by itself, so that its error is that of
	// a known field.
	parser robfig.Parser
	set    func(*robfig.SpecSchedule) uint64
}

var fields = [...]field{
	{
		"minute", "0 to 59", 60,
		robfig.NewParser(robfig.Minute), func(s *robfig.SpecSchedule) uint64 { return s.Minute },
	},
	{
		"hour", "0 to 23", 24,
		robfig.NewParser(robfig.Hour), func(s *robfig.SpecSchedule) uint64 { return s.Hour },
	},
	{
		"day of month", "1 to 31", 31,
		robfig.NewParser(robfig.Dom), func(s *robfig.SpecSchedule) uint64 { return s.Dom },
	},
	{
		"month", "1 to 12 or jan to dec", 12,
		robfig.NewParser(robfig.Month), func(s *robfig.SpecSchedule) uint64 { return s.Month },
	},
	{
		weekday, "0 to 7 or sun to sat, where 0 and 7 are Sunday", 7,
		robfig.NewParser(robfig.Dow), func(s *robfig.SpecSchedule) uint64 { return s.Dow },
	},
}

const (
	weekday = "day of week"
	sunday  = 7 // which is also 0
)

// form is what an item of a list looks like: a star, a value or a range, and
// perhaps a step. The library would take more: "*-5" for "*", nothing between
// two commas, "+5", and what begins with "TZ=" it would cut or panic at.
var form = regexp.MustCompile(`^(?:[*?]|([0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?)(?:/([0-9]+))?$`)

// parse is the set of the values that a field names.
func (f *field) parse(text string) (set uint64, err error) {
	for item := range strings.SplitSeq(text, ",") {
		more, err := f.item(item)
		if err != nil {
			return 0, fmt.Errorf("%s has %s: %w; it takes %s, \"*\", lists as 1,3, ranges as 1-5 and steps as */2 or 1-5/2",
				f.name, shown(text), err, f.takes)
		}
		set |= more
	}
	return set, nil
}

func (f *field) item(item string) (uint64, error) {
	parts := form.FindStringSubmatch(item)
	if parts == nil {
		return 0, fmt.Errorf("%s is no value, range or step", shown(item))
	}
	low, high, step := parts[1], parts[2], 1
	if parts[3] != "" {
		n, err := strconv.Atoi(parts[3])
		if err != nil || n < 1 || n > f.count {
			return 0, fmt.Errorf("the step in %s is not 1 to %d", shown(item), f.count)
		}
		step = n
	}
	if f.name == weekday && isSunday(high) {
		return f.toSunday(low, step)
	}
	if f.name == weekday && isSunday(low) && high == "" {
		item = "0" // with a step too: the week ends there
	}
	return f.read(item)
}

// isSunday: the library knows that day as 0 alone.
func isSunday(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n == sunday
}

// toSunday is the set of low-7/step.
func (f *field) toSunday(low string, step int) (uint64, error) {
	if isSunday(low) {
		return f.read("0")
	}
	first, err := f.read(low)
	if err != nil {
		return 0, err
	}
	set, err := f.read(fmt.Sprintf("%s-6/%d", low, step))
	if err != nil {
		return 0, err
	}
	if (sunday-bits.TrailingZeros64(first))%step == 0 {
		set |= 1
	}
	return set, nil
}

// read has the library read an item of the form.
func (f *field) read(item string) (uint64, error) {
	schedule, err := f.parser.Parse(item)
	if err != nil {
		return 0, f.refused(item, err)
	}
	spec, ok := schedule.(*robfig.SpecSchedule)
	if !ok {
		return 0, fmt.Errorf("%s is no value", shown(item))
	}
	return f.set(spec), nil
}

// refused says in the words of this package why the library took no item of
// the form, since what it takes is not quite the same: 7 is a Sunday here.
func (f *field) refused(item string, err error) error {
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(err.Error(), word) })
	}
	switch {
	case says("beyond end of range") && f.name == weekday:
		return fmt.Errorf("%s ends before it begins, and at the end of a week Sunday is 7", shown(item))
	case says("beyond end of range"):
		return fmt.Errorf("%s ends before it begins", shown(item))
	case says("above maximum", "below minimum"):
		return fmt.Errorf("%s is out of range", shown(item))
	}
	return fmt.Errorf("%s is no value", shown(item))
}
