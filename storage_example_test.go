package pawl

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// docs/storage.md promises that another language can enqueue from that page
// alone. What is run here is read from the page.

func storagePage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("docs/storage.md")
	require.NoError(t, err)
	return string(text)
}

func TestTheBytesOnTheStoragePageAreRight(t *testing.T) {
	t.Parallel()
	page := storagePage(t)
	words := strings.Join(strings.Fields(page), " ")

	const us, low = 1750000000123456, 0x800123456789abcd
	id := jobid.FromParts(us, low)
	entry, ok := jobid.Text(id)
	require.True(t, ok)
	back, ok := jobid.FromText(entry)
	require.True(t, ok)
	require.Equal(t, id, back)
	require.Contains(t, page, "UUID         "+id.String()+"\n")
	require.Contains(t, page, "stream id    "+entry+"\n")

	plain, rich := pageRecords()
	require.Contains(t, words, fmt.Sprintf(" % x ", plain.Append(nil)))
	require.Contains(t, words, fmt.Sprintf(" % x ", rich.Append(nil)))
	require.Contains(t, page, fmt.Sprintf("has %d bytes", len(plain.Append(nil))))
}

// pageRecords are the two jobs of the page.
func pageRecords() (plain, rich *record.Record) {
	payload := []byte(`{"user_id":42}`)
	return &record.Record{Kind: "welcome", Payload: payload},
		&record.Record{Kind: "welcome", Payload: payload, Priority: 5, LongHead: true, MaxAttempts: 3,
			Headers: map[string]string{"trace": "4bf92f35"}, Unique: &record.Unique{Key: "user:42"}}
}

func TestTheCommandsOnTheStoragePageEnqueue(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile(`(?m)^EVALSHA \$sha .*$`).FindAllString(storagePage(t), -1)
	require.Len(t, commands, 2)
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ended := make(pageHook, 2)
		client, err := New(r.rdb, Config{Hooks: []Hook{ended}})
		require.NoError(t, err)
		q := client.Queue("emails")
		send := func(command string) string {
			args := redisCLI(t, strings.Replace(command, "EVALSHA $sha", "EVAL "+strconv.Quote("script"), 1))
			args[1] = scriptEnqueue.body
			text, ok := r.do(args...).(string)
			require.True(t, ok)
			return text
		}

		var ids []ID
		for _, command := range commands {
			answer := send(command)
			us, mark, found := strings.Cut(answer, " ")
			require.True(t, found)
			require.Equal(t, ".", mark)
			require.Equal(t, answer, send(command), "sent again it answers as it did")
			lowText := regexp.MustCompile(` 1 (\d{19}) "`).FindStringSubmatch(command)
			require.Len(t, lowText, 2)
			id, ok := jobid.FromText(us + "-" + lowText[1])
			require.True(t, ok)
			ids = append(ids, id)
		}
		require.Equal(t, "stale", send(commands[0]))
		duplicate := send(strings.Replace(commands[1], "user:42 2 1 ", "user:42 3 1 ", 1))
		holder, _ := jobid.Text(ids[1])
		require.Regexp(t, `^\d{16} d `+holder+`$`, duplicate)

		info, err := q.Get(t.Context(), ids[0])
		require.NoError(t, err)
		require.Equal(t, "welcome", info.Kind)
		require.JSONEq(t, `{"user_id":42}`, string(info.Payload))
		info, err = q.Get(t.Context(), ids[1])
		require.NoError(t, err)
		require.Equal(t, 5, info.Priority)
		require.Equal(t, "user:42", info.Unique)
		require.Equal(t, Headers{"trace": "4bf92f35"}, info.Headers)
		require.InDelta(t, 100, info.DueAt.Sub(info.EnqueuedAt).Milliseconds(), 1)

		w, err := NewWorker(client, WorkerConfig{Queues: Queues("emails")})
		require.NoError(t, err)
		ran := make(chan *RawJob, 2)
		w.HandleRaw("welcome", func(_ context.Context, job *RawJob) error {
			ran <- job
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			<-ended
			<-ended
			stop()
		}()
		require.NoError(t, w.Run(ctx))
		first, second := <-ran, <-ran
		if first.ID == ids[1] { // they may run at once
			first, second = second, first
		}
		require.Equal(t, ids, []ID{first.ID, second.ID})
		require.Equal(t, 8, first.MaxAttempts)
		require.Equal(t, 3, second.MaxAttempts)

		require.NoError(t, r.rdb.Get(t.Context(), q.keys.lane("cli-1")).Err(), "the lane of the page")
		require.Zero(t, r.number("EXISTS", q.keys.unique("user:42")))
		found, err := q.Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, found)
	})
}

// pageHook tells of each job that is done.
type pageHook chan struct{}

func (h pageHook) Done(context.Context, Event) { h <- struct{}{} }

// redisCLI splits a line as redis-cli does: words, and texts in double quotes
// with the escapes of Go.
func redisCLI(t *testing.T, line string) (args []any) {
	t.Helper()
	for _, word := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`).FindAllString(line, -1) {
		if strings.HasPrefix(word, `"`) {
			text, err := strconv.Unquote(word)
			require.NoError(t, err, word)
			word = text
		}
		args = append(args, word)
	}
	return args
}
