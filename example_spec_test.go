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
