package pawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// nested is a record with a chain of follow-ups so many deep.
func nested(deep int) string {
	return rec(func(r *record.Record) {
		if deep > 0 {
			r.Then = []record.Then{{How: "d 1000", Record: []byte(nested(deep - 1))}, {How: "a 99", Record: []byte("torn")}}
		}
	})
}

// depth is how many deep the first follow-ups of options lie.
func depth(options []Option) (n int) {
	for {
		at := len(options)
		for i, o := range options {
			if _, ok := o.(Then); ok {
				at = i
				break
			}
		}
		if at == len(options) {
			return n
		}
		options, n = options[at].(Then).Options, n+1
	}
}

func TestFollowUpsOfAScheduleAreReadAsDeepAsTheyMayBe(t *testing.T) {
	t.Parallel()
	for deep, want := range map[int]int{0: 0, 1: 1, maxDepth: maxDepth, maxDepth + 3: maxDepth} {
		info := seenSchedule{id: "s", definition: definition{spec: "every 1m0s", record: nested(deep)}.text()}.info()
		require.Equal(t, want, depth(info.Options))
		if deep > 0 {
			require.Equal(t, Delay(time.Second), info.Options[0].(Then).Options[0])
			require.Len(t, info.Options, 1, "what cannot be read is left out")
		}
	}
}

// FuzzScheduleInfo: whatever is stored of a schedule, what is told of it can be shown.
func FuzzScheduleInfo(f *testing.F) {
	full := fullDefinition()
	f.Add(full.text(), "A 1 2 3 x 4 5 6 1")
	full.record = nested(3)
	f.Add(full.text(), "A 1 2 0 - 0 0 0 0")
	full.record = rec(priority(300))
	f.Add(full.text(), "A -1 999999999999999 0 - 0 0 0 0")
	f.Add("\x02", "")
	f.Add("", " ")
	f.Fuzz(func(t *testing.T, definition, state string) {
		info := seenSchedule{id: "s", definition: definition, state: state}.info()
		require.Equal(t, "s", info.ID)
		for _, o := range info.Options {
			require.NotNil(t, o)
		}
		require.LessOrEqual(t, depth(info.Options), maxDepth)
		require.False(t, strings.Contains(fmt.Sprint(info), "PANIC"))
	})
}
