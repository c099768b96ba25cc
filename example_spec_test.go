package pawl_test

import (
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Specs are values: compared, kept in a variable, shown.
func ExampleSpec() {
	nightly := pawl.CronIn("Europe/Berlin", "0 2 * * *")
	fmt.Println(nightly)
	fmt.Println(nightly == pawl.CronIn("Europe/Berlin", "0  2  *  *  *"))
	fmt.Println(nightly == pawl.Cron("0 2 * * *"))
	// Output:
	// cron 0 2 * * * in Europe/Berlin
	// true
	// false
}

// A line that a customer typed is checked, and its times are shown, before it is stored.
func ExampleSpec_Next() {
	// region next
	times := func(zone, line string) error {
		spec := pawl.CronIn(zone, line)
		if err := spec.Validate(); err != nil {
			return err // it says what to write instead
		}
		at := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC) // now, in production
		for range 5 {
			var err error
			if at, err = spec.Next(at); err != nil {
				return err
			}
			fmt.Println(at.Format("Mon 2006-01-02 15:04 MST"))
		}
		return nil
	}
	fmt.Println(times("Europe/Berlin", "30 2 * * *"))
	fmt.Println(times("Europe/Berlin", "02:30"))
	// endregion

	// Output:
	// Sat 2026-03-28 02:30 CET
	// Sun 2026-03-29 03:00 CEST
	// Mon 2026-03-30 02:30 CEST
	// Tue 2026-03-31 02:30 CEST
	// Wed 2026-04-01 02:30 CEST
	// <nil>
	// pawl: invalid: CronIn("Europe/Berlin", "02:30"): the line has 1 field, not 5: write "minute hour day-of-month month day-of-week", as "0 2 * * *"
}

// Minute, hour, day of month, month, day of week, in UTC.
func ExampleCron() {
	for _, spec := range []pawl.Spec{
		pawl.Cron("*/15 * * * *"),     // each quarter of an hour
		pawl.Cron("30 6 * * mon-fri"), // at 06:30 on working days
		pawl.Cron("0 0 1 jan,jul *"),  // twice a year
		pawl.Cron("0 9 13 * fri"),     // at 09:00 on each 13th, and on each Friday
		pawl.Cron("@daily"),           // at midnight
	} {
		fmt.Println(spec)
	}
	// Output:
	// cron */15 * * * * in UTC
	// cron 30 6 * * mon-fri in UTC
	// cron 0 0 1 jan,jul * in UTC
	// cron 0 9 13 * fri in UTC
	// cron @daily in UTC
}

// Once on each day, also when the clock is changed at that time: at 03:00 in
// spring, when there is no 02:30, and at the first of two in autumn.
func ExampleCronIn() {
	fmt.Println(pawl.CronIn("Europe/Berlin", "30 2 * * *"))
	// Output: cron 30 2 * * * in Europe/Berlin
}

// The times lie on a grid, whatever the runs take.
func ExampleEvery() {
	fmt.Println(pawl.Every(90 * time.Minute))
	// Output: every 1h30m0s
}
