package pawl

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Replies of scripts, as a fuzzer makes them: any bytes are a reply, and a byte
// changed is most often another one.

// The letters before each value. Whatever else stands there is a text by itself.
const (
	tagNil  = 'n'
	tagInt  = 'i' // a varint
	tagText = 's' // a length of one byte, bytes
	tagList = '[' // values until a ]
	tagEnd  = ']'
)

// readReply reads a value off the front of b.
func readReply(b []byte, depth int) (v any, rest []byte) {
	if len(b) == 0 {
		return nil, nil
	}
	tag, b := b[0], b[1:]
	switch tag {
	case tagNil:
		return nil, b
	case tagInt:
		n, size := binary.Varint(b)
		return n, b[min(len(b), max(size, 0)):]
	case tagText:
		if len(b) == 0 {
			return "", nil
		}
		n := min(int(b[0]), len(b)-1)
		return string(b[1 : 1+n]), b[1+n:]
	case tagList:
		list := []any{}
		for len(b) > 0 && b[0] != tagEnd && depth < 8 {
			v, b = readReply(b, depth+1)
			list = append(list, v)
		}
		return list, b[min(len(b), 1):]
	default:
		return string(tag), b
	}
}

// writeReply is the inverse, for seeds.
func writeReply(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			b = append(b, tagNil)
		case int:
			b = binary.AppendVarint(append(b, tagInt), int64(v))
		case string:
			b = append(append(b, tagText, byte(len(v))), v[:min(len(v), 255)]...)
		case []any:
			b = append(append(append(b, tagList), writeReply(v...)...), tagEnd)
		}
	}
	return b
}

// words is a list of texts.
func words(texts ...string) []any {
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list
}

// A puppet answers for Redis: the scripts with what it is given, in turn, and
// then with nothing; other commands as a server would that has such a queue.
type puppet struct {
	replies []byte
	asked   int // how often a script was called
}

func (*puppet) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *puppet) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error { return p.answer(cmd) }
}

func (p *puppet) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = p.answer(cmd)
		}
		return nil
	}
}

func (p *puppet) answer(cmd redis.Cmder) error {
	switch cmd := cmd.(type) {
	case command:
		var v any
		p.asked++
		if v, p.replies = readReply(p.replies, 0); v == nil { // as go-redis tells a null
			cmd.SetErr(redis.Nil)
			return redis.Nil
		}
		cmd.SetVal(v)
	case *redis.IntCmd:
		cmd.SetVal(1)
	case *redis.TimeCmd:
		cmd.SetVal(time.UnixMilli(1750000000000))
	case *redis.StringSliceCmd:
		cmd.SetVal([]string{"emails"})
	case *redis.ScanCmd:
		cmd.SetVal([]string{seedID, seedRun}, 0)
	case *redis.SliceCmd: // HMGET, of places of the dead or of names of workers
		list := make([]any, len(cmd.Args())-2)
		for i := range list {
			list[i] = "1750000000500-0"
		}
		cmd.SetVal(list)
	case *redis.XMessageSliceCmd:
		cmd.SetVal([]redis.XMessage{{ID: "1750000000500-0", Values: map[string]any{"i": seedID, "p": seedRecord}}})
	default:
		cmd.SetErr(replyError("ERR no such command"))
	}
	return nil
}

const (
	seedID     = "1750000000123456-9223692292828277709"
	seedID2    = "1750000000123457-9223692292828277710"
	seedToken  = "1750000000200000-abcdefghABCDEF"
	seedRun    = seedToken + "|2||"
	seedRecord = "\x01\x00\x07welcome\x00{\"user_id\":42}"
)

// newPuppet is a client whose scripts answer what the returned puppet is given.
func newPuppet(f testing.TB) (*Client, *puppet) {
	f.Helper()
	p := &puppet{}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	f.Cleanup(func() { _ = rdb.Close() })
	rdb.AddHook(p)
	c, err := New(rdb, Config{})
	require.NoError(f, err)
	return c, p
}

// soon bounds a walk that a puppet could lead in circles.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}
