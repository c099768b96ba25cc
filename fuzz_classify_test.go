package pawl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// replyError is an error that a server answered with.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

// FuzzClassify is about the texts of servers: those of other versions, of
// proxies, and of whoever else answers on the port.
func FuzzClassify(f *testing.F) {
	for word := range classOfWord {
		f.Add(word, "what follows")
		f.Add(word, "")
		f.Add("ERR", "Error running script (call to f_0): @user_script:1: -"+word+" inner")
		f.Add("ERR", "user_script:7: "+word+": inner script")
	}
	f.Add("", "")
	f.Add("ERR", "max number of clients reached")
	f.Add("ERR", "unauthenticated bulk length")
	f.Add("Protocol", "error: unauthenticated multibulk length")
	f.Add("ERR", "@user_script: 4: The user executing the script can't run this command or subcommand script")
	f.Add("oom", "lower case is another word")
	f.Add("NOSCRIPTS", "longer is another word")
	f.Add("ERR", "NOSCRIPT is not its first word")
	f.Add("\xff", "\x00 script OOM")
	f.Fuzz(func(t *testing.T, word, rest string) {
		text := strings.TrimSuffix(word+" "+rest, " ")
		var err error = replyError(text)
		got := classify(err)
		require.NotEqual(t, classAnswered, got, "an error is no answer")
		require.NotEqual(t, classUnknown, got, "a server that answers has decided")
		require.Equal(t, got, classify(fmt.Errorf("wrapped: %w", err)), "wrapped or not")
		require.Equal(t, got, classify(explain(err)), "explained or not")
		require.ErrorIs(t, explain(err), err)
		if !strings.Contains(word, " ") {
			if want, known := classOfWord[word]; known {
				require.Equal(t, want, got, "the first word decides, whatever follows")
			} else if !strings.Contains(text, "script") && !strings.Contains(text, "<string>") {
				require.NotContains(t, []class{classFull, classNoScript}, got, "a word further on is text")
			}
		}
		switch got {
		case classBroken, classDenied, classFull: // these end a call: it is never sent again
			require.ErrorIs(t, (&call{err: err}).verdict(got), err)
		default:
			require.NoError(t, (&call{err: err}).verdict(got))
		}
		// What did not come from a server is never taken for its word.
		require.Equal(t, classUnknown, classify(errors.New(text)))
		require.Equal(t, classAnswered, classify(redis.Nil))
	})
}
