package pawl_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are the faults of docs/failure-modes.md: a letter and how many it has.
var rows = []struct {
	letter string
	n      int
}{{"W", 10}, {"N", 7}, {"P", 5}, {"S", 2}, {"C", 2}, {"E", 8}, {"T", 3}, {"D", 3}, {"L", 7}, {"", 24}}

// later are those of features that are not built yet, which the page must say.
var later = map[string]bool{"24": true}

func TestEveryFaultHasATestOrIsSaidToComeLater(t *testing.T) {
	t.Parallel()
	exist := testNames(t)
	lines := map[string]string{}
	for _, line := range strings.Split(string(sources(t, ".md")["docs/failure-modes.md"]), "\n") {
		if m := regexp.MustCompile(`^\| ([WNPSCETDL]?\d+) \|`).FindStringSubmatch(line); m != nil {
			require.NotContains(t, lines, m[1], "two rows of one name")
			lines[m[1]] = line
		}
	}
	for _, group := range rows {
		for i := 1; i <= group.n; i++ {
			name := fmt.Sprintf("%s%d", group.letter, i)
			require.Contains(t, lines, name)
			tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(lines[name], -1)
			if later[name] {
				require.Contains(t, lines[name], "not built yet", name)
				continue
			}
			require.NotEmpty(t, tests, "row %s has no test", name)
			for _, m := range tests {
				require.True(t, exist[m[1]], "row %s names %s, and there is no such test", name, m[1])
			}
		}
	}
}
