package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

const secret = "s3cr3t/#?@%:w0rd"

// escaped is the secret in a URL.
const escaped = "s3cr3t%2F%23%3F%40%25%3Aw0rd"

func TestThePasswordComesFromAFileOrTheEnvironment(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", secret)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: secret})
	t.Cleanup(func() { _ = rdb.Close() })
	require.NoError(t, rdb.Ping(t.Context()).Err())
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	plain := "redis://" + s.Addr()
	args := words("enqueue emails --kind welcome --payload {}")
	for name, c := range map[string]struct {
		args []string
		env  func(*world)
	}{
		"REDIS_URL":                  {nil, env("REDIS_URL", "redis://:"+escaped+"@"+s.Addr())},
		"REDIS_URL with a user":      {nil, env("REDIS_URL", "redis://default:"+escaped+"@"+s.Addr())},
		"PAWL_REDIS_PASSWORD":        {[]string{"--redis", plain}, env("PAWL_REDIS_PASSWORD", secret)},
		"before that of REDIS_URL":   {nil, env("REDIS_URL", "redis://:wrong@"+s.Addr(), "PAWL_REDIS_PASSWORD", secret)},
		"a file":                     {[]string{"--redis", plain, "--password-file", file}, env()},
		"a file, before all others":  {[]string{"--password-file", file}, env("REDIS_URL", "redis://:wrong@"+s.Addr(), "PAWL_REDIS_PASSWORD", "wrong")},
		"a user in --redis, no word": {[]string{"--redis", "redis://default@" + s.Addr(), "--password-file", file}, env()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t.Context(), append(c.args, args...), c.env)
			require.Zero(t, got.code, got.err)
		})
	}
	for name, c := range map[string]struct{ url, word string }{"none": {plain, "NOAUTH"}, "a wrong one": {"redis://:" + escaped + "x@" + s.Addr(), "WRONGPASS"}} {
		got := call(t.Context(), []string{"stats"}, env("REDIS_URL", c.url))
		require.Equal(t, exitAway, got.code, name)
		require.Contains(t, got.err, c.word)
		require.Contains(t, got.err, "--password-file")
		requireNoSecret(t, got)
	}
}

func requireNoSecret(t *testing.T, got result) {
	t.Helper()
	for _, part := range []string{secret, escaped, "s3cr3t", "w0rd"} {
		require.NotContains(t, got.out+got.err, part)
	}
}

// A password in an argument is refused, and no error shows any of a URL that may have one:
// not even where it was taken for a host, a port or a path, since it was not escaped.
func TestThePasswordIsNeverShown(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://:" + escaped + "@127.0.0.1:1", "redis://user:" + escaped + "@127.0.0.1:1", "redis://:" + secret + "@127.0.0.1:1",
		"redis://:s3cr3t/w0rd@127.0.0.1:1/0", "redis://:12/s3cr3t@127.0.0.1:1", "redis://:s3cr3t#w0rd@127.0.0.1:1", "redis://:12#s3cr3t@127.0.0.1:1",
		"redis://:12?s3cr3t@127.0.0.1:1", "redis://:s3cr3t%@127.0.0.1:1", "redis://:s3cr3t w0rd@127.0.0.1:1", "s3cr3t@127.0.0.1:1",
		"user:s3cr3t@127.0.0.1:1", "redis://127.0.0.1:1/s3cr3t", "redis://127.0.0.1:1?s3cr3t=1", "redis://127.0.0.1:1?password=s3cr3t",
		"redis://127.0.0.1:1?read_timeout=s3cr3t", "http://:s3cr3t@127.0.0.1:1", "unix://:s3cr3t@", "\x1b[31ms3cr3t", "redis://[s3cr3t",
	} {
		for _, more := range []string{"", "--cluster", "--sentinel"} {
			args := append([]string{"stats", "--timeout", "200ms"}, strings.Fields(more)...)
			got := call(t.Context(), args, env("REDIS_URL", url))
			require.NotZero(t, got.code, url)
			requireNoSecret(t, got)
			requireHarmless(t, got.err, url)

			got = call(t.Context(), append(args, "--redis", url))
			require.Equal(t, exitUsage, got.code, url)
			require.Contains(t, got.err, "--redis")
			requireNoSecret(t, got)
		}
	}
	got := call(t.Context(), []string{"stats", "--redis", "redis://:" + escaped + "@127.0.0.1:1"})
	require.Contains(t, got.err, "REDIS_URL, PAWL_REDIS_PASSWORD or --password-file")
}

// A server, or a proxy before it, that does not know AUTH answers with its arguments.
func TestAServerThatRepeatsThePasswordIsScrubbed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	says := "ERR unknown command, with args beginning with: 'AUTH' '" + secret + "'"
	proxy.On("hello", 0, redistest.Refuse(says))
	proxy.On("auth", 0, redistest.Refuse(says))
	got := call(t.Context(), []string{"stats"}, env("REDIS_URL", "redis://"+proxy.Addr(), "PAWL_REDIS_PASSWORD", secret))
	require.Equal(t, exitAway, got.code)
	require.Contains(t, got.err, "'AUTH' '***'")
	requireNoSecret(t, got)
}

// What doctor was refused is a part of its findings.
func TestDoctorShowsNoPasswordThatAServerRepeats(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", secret)
	proxy := redistest.NewProxy(t, s.Addr())
	for _, name := range []string{"info", "config", "eval", "evalsha", "blpop", "subscribe"} {
		proxy.On(name, 0, redistest.Refuse("NOPERM this user, who said 'AUTH' '"+secret+"', has no permissions to run the '"+name+"' command"))
	}
	at := env("REDIS_URL", "redis://:"+escaped+"@"+proxy.Addr())
	for _, form := range []string{"--text", "--json"} {
		got := call(t.Context(), []string{"doctor", form}, at)
		require.Equal(t, exitFound, got.code, got.err)
		require.Contains(t, got.out, "INFO is refused (NOPERM this user, who said 'AUTH' '***', has no")
		requireNoSecret(t, got)
	}
}

// A password that is a word of this program: only what the server said is redacted.
func TestAPasswordThatIsAWordLeavesTheWordsAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	says := "WRONGPASS no such user-password pair: 'default' 'password'"
	proxy.On("hello", 0, redistest.Refuse(says))
	proxy.On("auth", 0, redistest.Refuse(says))
	got := call(t.Context(), []string{"stats"}, env("REDIS_URL", "redis://"+proxy.Addr(), "PAWL_REDIS_PASSWORD", "password"))
	require.Equal(t, exitAway, got.code)
	require.Contains(t, got.err, "user-*** pair: 'default' '***'")
	require.Contains(t, got.err, "give the user in the URL, and the password by REDIS_URL, PAWL_REDIS_PASSWORD or --password-file\n")
	require.NotContains(t, got.err, ".:")
}

func TestAPasswordFileThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for _, file := range []string{empty, filepath.Join(t.TempDir(), "none")} {
		got := call(t.Context(), []string{"stats", "--redis", "redis://127.0.0.1:1", "--password-file", file})
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, file)
	}
	got := call(t.Context(), []string{"stats"})
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "REDIS_URL")
}
