package pawl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScriptsPassTheLint(t *testing.T) {
	t.Parallel()
	libs, verbs := readScripts(t, "lua/lib/*.lua"), readScripts(t, "lua/*.lua")
	require.NotEmpty(t, verbs)
	for name, source := range libs {
		for _, problem := range lintLib(name, source) {
			t.Error("lua/lib/" + problem)
		}
	}
	for name, source := range verbs {
		for _, problem := range lintVerb(name, source, libs) {
			t.Error("lua/" + problem)
		}
	}
}

func readScripts(t *testing.T, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	scripts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		scripts[strings.TrimSuffix(filepath.Base(file), ".lua")] = string(text)
	}
	return scripts
}

const goodScript = `-- touch: what a script may do.
--
-- KEYS[1] jobs    stream
-- KEYS[2..]       unique keys
-- ARGV[1] seq     sequence in the lane
-- ARGV[2] id
-- ARGV[3..]       per job: id and
--                 what belongs to it
--
-- returns "ok" | "stale"
-- include: lane
local t = redis.call('TIME')
local id, mode_s = ARGV[2], 'x'
for i = 3, #ARGV do redis.call('ZADD', KEYS[1], 12, ARGV[i]) end
redis.call('DEL', unpack(KEYS, 2))
local k = KEYS[2]
redis.call('HSET', k, id .. ':' .. num(t[1]) .. ARGV[1]:sub(1, 2), 'a' .. (mode_s or 'b'))
redis.call('XINFO', 'STREAM', KEYS[1])
return run_text(t) .. (k and '(' .. id or '-') .. string.format('%.0f', t[2])
`

var goodLibs = map[string]string{"lane": "local function lane(key) return redis.call('GET', key) end\n"}

func TestTheLintPassesAGoodScript(t *testing.T) {
	t.Parallel()
	require.Empty(t, lintVerb("touch", goodScript, goodLibs))
}

func TestTheLintSeesWhatALibraryUses(t *testing.T) {
	t.Parallel()
	script := "-- v: x\n-- KEYS[1] lane  x\n-- returns 1\n-- include: a\nreturn 1\n"
	require.Empty(t, lintVerb("v", script, map[string]string{"a": "redis.call('GET', KEYS[1])"}))
	require.NotEmpty(t, lintVerb("v", script, map[string]string{"a": "return 1"}))
}

// Each case is one mistake in a script that is right but for it.
func TestTheLintCatchesABadHeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, bad, want string }{
		"no header":                {"-- touch:", "local x\n-- touch:", "first line must be"},
		"the name of another file": {"-- touch:", "-- lease:", "first line must be"},
		"no word on what it does":  {"-- touch: what a script may do.", "-- touch:", "first line must be"},
		"no returns":               {"-- returns", "-- answers", "no line"},
		"a nameless key":           {"-- KEYS[1] jobs    stream", "-- KEYS[1]", "a declaration is"},
		"a gap":                    {"-- ARGV[2]", "-- ARGV[4]", "out of order"},
		"one index twice":          {"-- ARGV[2]", "-- ARGV[1]", "out of order"},
		"an unused argument":       {"local id, mode_s = ARGV[2]", "local id, mode_s = '7'", "ARGV[2] is declared and not used"},
		"an unused tail":           {"for i = 3, #ARGV do redis.call('ZADD', KEYS[1], 12, ARGV[i]) end", "redis.call('XLEN', KEYS[1])", "ARGV[3..] is declared and not used"},
		"a tail that is missing":   {"-- ARGV[3..]", "-- and", "no ARGV[n..] is declared"},
		"an undeclared argument":   {"-- ARGV[2] id\n-- ARGV[3..]", "-- and", "ARGV[2] is used and not declared"},
		"an unknown library":       {"include: lane", "include: line", "not in lua/lib"},
		"a syntax error":           {"local t =", "local t = =", "does not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := strings.Replace(goodScript, c.old, c.bad, 1)
			require.NotEqual(t, goodScript, bad, "the case changes nothing")
			require.Contains(t, strings.Join(lintVerb("touch", bad, goodLibs), "\n"), c.want)
		})
	}
}

func TestTheLintCatchesABadBody(t *testing.T) {
	t.Parallel()
	const made, built, digits = "is made in the script", "a key is built", "only text may be joined"
	for line, want := range map[string]string{
		`redis.call('GET', 'pawl:x')`:                              made,
		`redis.pcall('GET', 'pawl:x')`:                             made,
		`redis.call('GET', 7)`:                                     made,
		`redis.call('GET', 'pawl:' .. id)`:                         made,
		`redis.call('GET', string.format('%s', id))`:               made,
		`redis.call('GET', id and 'a' or KEYS[1])`:                 made,
		`redis.call('DEL', KEYS[1], 'pawl:x')`:                     made,
		`redis.call('COPY', KEYS[1], 'pawl:x')`:                    made,
		`redis.call('XINFO', 'STREAM', 'pawl:x')`:                  made,
		`local k = 'pawl:' .. id; redis.call('GET', k)`:            made,
		`local k; k = prefix(id); redis.call('GET', k)`:            made,
		`if id then for i = 1, 2 do redis.call('GET', '') end end`: made,
		`local f = function() redis.call('GET', 'k') end`:          made,
		`local k = KEYS[1] .. ':x'`:                                built,
		`local x = { a = id .. KEYS[i] }`:                          built,
		`local x = id .. n`:                                        digits,
		`local x = 1 .. id`:                                        digits,
		`local x = id .. (n + 1)`:                                  digits,
		`local x = id .. #list`:                                    digits,
		`local x = id .. entry[1]`:                                 digits,
		`local x = id .. redis.call('TIME')[1]`:                    digits,
		`local x = id .. tonumber(id)`:                             digits,
		`local x = id .. (id and n or id)`:                         digits,
		`local x = id .. ('a' .. n)`:                               digits,
		`local x = id .. job.score`:                                digits,
		`local x = id .. text:len()`:                               digits,
		`local x = tostring(n)`:                                    "tostring keeps 14 digits",
		`redis.call('KEYS', '*')`:                                  "KEYS is not allowed",
		`redis.call('scan', 0)`:                                    "SCAN is not allowed",
		`redis.call('LREM', k, 0, id)`:                             "LREM is not allowed",
		`redis.call('LRANGE', k, 0, 1)`:                            "LRANGE is not allowed",
		`redis.call('XTRIM', k, 'MAXLEN', 1)`:                      "XTRIM is not allowed",
		`redis.call(command, k)`:                                   "named literally",
		`redis.call()`:                                             "named literally",
		`local call = redis.call`:                                  "passed on",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, strings.Join(lintLib("lib", line), "\n"), want)
			verb := strings.Replace(goodScript, "return run_text", line+"\nreturn run_text", 1)
			require.Contains(t, strings.Join(lintVerb("touch", verb, goodLibs), "\n"), want)
		})
	}
}
