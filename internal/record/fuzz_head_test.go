package record_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/pawlq/pawl/internal/record"
)

// luaHead is lua/lib/head.lua itself, as the scripts include it: a copy of it
// in Go would prove nothing when one of the two is changed.
type luaHead struct {
	state          *lua.LState
	read, due, run *lua.LFunction
}

func newLuaHead(tb testing.TB) *luaHead {
	tb.Helper()
	text, err := os.ReadFile("../../lua/lib/head.lua")
	require.NoError(tb, err)
	state := lua.NewState()
	tb.Cleanup(state.Close)
	require.NoError(tb, state.DoString(string(text)+"\nreturn head_read, head_due, head_run"))
	h := &luaHead{state: state}
	for i, fn := range []**lua.LFunction{&h.read, &h.due, &h.run} {
		*fn = state.Get(i + 1).(*lua.LFunction)
	}
	state.SetTop(0)
	return h
}

func (h *luaHead) call(tb testing.TB, fn *lua.LFunction, results int, args ...lua.LValue) []lua.LValue {
	tb.Helper()
	require.NoError(tb, h.state.CallByParam(lua.P{Fn: fn, NRet: results, Protect: true}, args...))
	values := make([]lua.LValue, results)
	for i := range values {
		values[i] = h.state.Get(i + 1)
	}
	h.state.SetTop(0)
	return values
}

// head is what Lua reads, as a record with nothing else in it.
func (h *luaHead) head(tb testing.TB, b []byte) record.Record {
	tb.Helper()
	v := h.call(tb, h.read, 6, lua.LString(b))
	number := func(i int) int64 { return int64(v[i].(lua.LNumber)) }
	return record.Record{Priority: int(number(0)), Started: v[1] == lua.LTrue, Crashes: int(number(2)),
		MaxCrashes: int(number(3)), Visibility: time.Duration(number(4)) * time.Millisecond, Due: number(5)}
}

func headOf(r *record.Record) record.Record {
	return record.Record{Priority: r.Priority, Started: r.Started, Crashes: r.Crashes,
		MaxCrashes: r.MaxCrashes, Visibility: r.Visibility, Due: r.Due}
}

// FuzzHead holds the two readers of a head to each other, and what Lua writes
// into one to what Go reads.
func FuzzHead(f *testing.F) {
	for name := range golden() {
		f.Add(readHex(f, name), int64(1750000100000), uint16(1))
	}
	long := func(flags byte, rest ...byte) []byte {
		b := append([]byte{1, 32 | flags}, make([]byte, 12)...)
		copy(b[2:], rest)
		return append(b, 1, 'k', 0, 'p')
	}
	f.Add([]byte{}, int64(0), uint16(0))
	f.Add([]byte{1}, int64(0), uint16(0))
	f.Add([]byte{1, 16 | 9, 1, 'k', 0}, int64(1), uint16(0))
	f.Add([]byte{1, 10, 1, 'k', 0}, int64(1), uint16(0))                   // a priority that Go refuses and Lua cuts
	f.Add([]byte{2, 32, 1, 'k', 0}, int64(1), uint16(0))                   // another version
	f.Add(long(9)[:13], int64(1), uint16(1))                               // one byte short of a long head
	f.Add(long(64), int64(1), uint16(1))                                   // a flag that Go refuses
	f.Add(long(16, bytes.Repeat([]byte{255}, 12)...), int64(1), uint16(3)) // all at their greatest
	f.Add(long(0, 254), int64(1<<48-1), uint16(255))
	f.Add(long(0, 0, 0, 0, 0, 0, 0, 0x80), int64(1<<47), uint16(256))
	f.Add(long(5, 0, 255, 0x7f, 0xff, 0xff, 0xff), int64(253402300800000), uint16(65535)) // the end of the year 9999

	h := newLuaHead(f)
	f.Fuzz(func(t *testing.T, b []byte, due int64, crashes uint16) {
		seen := h.head(t, b)
		require.LessOrEqual(t, seen.Priority, 9)
		dueSet := []byte(lua.LVAsString(h.call(t, h.due, 1, lua.LString(b), lua.LNumber(due&(1<<48-1)))[0]))
		runSet := []byte(lua.LVAsString(h.call(t, h.run, 1, lua.LString(b), lua.LNumber(crashes))[0]))
		require.Len(t, dueSet, len(b), "a head is patched in place")
		require.Len(t, runSet, len(b))

		r, err := record.Decode(b)
		if err != nil {
			return
		}
		require.Equal(t, headOf(r), seen)
		if !r.LongHead {
			require.Equal(t, b, dueSet, "there is no place for it")
			require.Equal(t, b, runSet)
			return
		}
		want := *r
		want.Due = due & (1<<48 - 1)
		got, err := record.Decode(dueSet)
		require.NoError(t, err)
		require.Equal(t, &want, got, "the due time and nothing else")

		want = *r
		want.Started, want.Crashes = true, min(int(crashes), math.MaxUint8)
		got, err = record.Decode(runSet)
		require.NoError(t, err)
		require.Equal(t, &want, got, "the crashes, started, and nothing else")
	})
}

// unknownFields are those of a record with tags that this build does not know,
// read by a walk that knows nothing of tags, by rising tag.
func unknownFields(b []byte) (fields [256][][]byte) {
	if b[1]&32 != 0 {
		b = b[12:]
	}
	value := func() []byte {
		n, size := binary.Uvarint(b)
		v := b[size : size+int(n)]
		b = b[size+int(n):]
		return v
	}
	b = b[2:]
	value() // the kind
	for b[0] != 0 {
		tag := b[0]
		b = b[1:]
		if v := value(); tag > lastKnownTag {
			fields[tag] = append(fields[tag], v)
		}
	}
	return fields
}

// lastKnownTag is that of the layout's table in docs/storage.md.
const lastKnownTag = 22
