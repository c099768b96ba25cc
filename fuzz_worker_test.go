package pawl

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

func newPuppetWorker(f testing.TB) (*Worker, *puppet) {
	f.Helper()
	c, p := newPuppet(f)
	w, err := NewWorker(c, WorkerConfig{Queues: Queues("emails")})
	require.NoError(f, err)
	w.base = context.Background()
	return w, p
}

// FuzzLeaseReply: any answer to a lease is refused, or is jobs that each can be
// run or buried.
func FuzzLeaseReply(f *testing.F) {
	lease := func(parts ...string) { f.Add(writeReply(words(parts...))) }
	lease("1750000000300", "-1", seedToken)
	lease("1750000000300", "0", seedToken, seedID, seedRecord, "0", "", seedID2, seedRecord, "2", "xs")
	lease("1750000000300", "5", seedToken, seedID, "\x02corrupt", "255", "c")
	lease("1750000000300", "5", seedToken, "no id", "", "-1", "xcs")
	lease("1750000000300", "9223372036854775807", "", "", "", "9223372036854775808", "")
	lease("-9223372036854775808", "-9223372036854775808", "-", seedID, "\x00f\x00v", "x", "")
	lease("9223372036854775807", "1", "9223372036854775808-", seedID, seedRecord, "0", "")
	lease("1750000000300", "0", seedToken, seedID) // cut short
	lease("stale")
	lease("now", "0", "")
	f.Add(writeReply([]any{1750000000300, "0", seedToken}))
	f.Add(writeReply([]any{"1", nil, 7, []any{}, 1, nil, []any{"x"}}))
	f.Add(writeReply("stale"))
	f.Add([]byte{})
	full := &record.Record{Kind: "k", MaxCrashes: 1, Timeout: time.Hour, Visibility: time.Hour, ExpireIn: 1, Since: 1, UnknownSince: 1, PutBacks: 1 << 62}
	lease("1750000000300", "-1", seedToken, seedID, string(full.Append(nil)), "1", "")

	w, _ := newPuppetWorker(f)
	fd := w.feeds[0]
	f.Fuzz(func(t *testing.T, reply []byte) {
		v, _ := readReply(reply, 0)
		jobs, next, ok := fd.parse(&leaseCall{call: &call{reply: v, first: time.Now()}})
		parts, isList := v.([]any)
		if !ok {
			require.Empty(t, jobs)
			require.True(t, next.IsZero())
			return
		}
		require.True(t, isList)
		require.Equal(t, len(parts), 3+4*len(jobs))
		require.True(t, next.IsZero() || next.Before(time.Now().Add(maxWait+time.Second)))
		for i, job := range jobs {
			text, _ := parts[3+4*i+1].(string)
			require.Equal(t, text, job.record)
			requireEnds(t, fd, job)
		}
	})
}

// requireEnds holds that a leased job has an outcome, whatever it is: a handler,
// which this worker has none of, would be given a job that is whole.
func requireEnds(t *testing.T, fd *feed, job leased) {
	t.Helper()
	r := newRun(fd, job)
	defer r.cancel(nil)
	if r.release != nil {
		defer r.release()
	}
	out := r.unrun()
	require.NotNil(t, out)
	require.GreaterOrEqual(t, out.event.Wait, time.Duration(0))
	switch out.verb {
	case verbBury:
		rec, err := record.Decode(out.record)
		require.NoError(t, err)
		require.NotNil(t, rec.Dead)
		require.Equal(t, string(out.reason), rec.Dead.Reason)
		if r.bad != nil {
			require.Equal(t, ReasonCorrupt, out.reason)
			require.Equal(t, job.record, string(rec.Payload), "its raw bytes are kept")
		}
	case verbRetry:
		require.GreaterOrEqual(t, out.delay, time.Duration(0))
		rec, err := record.Decode(out.record)
		require.NoError(t, err)
		require.Equal(t, r.rec.Kind, rec.Kind)
	default:
		require.Equal(t, "cancelled", out.counter)
	}
}

// puppetRuns are n runs that a feed holds.
func puppetRuns(fd *feed, n int) (runs []*run) {
	fd.running = map[string]*run{}
	for i := range n {
		r := newRun(fd, leased{id: seedID[:15] + string(rune('0'+i)) + seedID[16:], token: seedToken, record: seedRecord, sent: time.Now()})
		fd.running[r.id] = r
		runs = append(runs, r)
	}
	return runs
}

// FuzzVerbReply: after any answer to settle, retry, bury or release each run is
// ended, was lost, or is on its way again: none is forgotten unanswered.
func FuzzVerbReply(f *testing.F) {
	for v := range byte(verbs) {
		for _, marks := range []string{"kkk", "klk", "lll", "kcl", "ccc", "kk", "kkkk", "", "stale"} {
			f.Add(v, byte(3), writeReply(marks))
		}
		f.Add(v, byte(0), writeReply(""))
		f.Add(v, byte(5), writeReply("stale")) // as long as the runs are many
		f.Add(v, byte(1), writeReply(words("k")))
		f.Add(v, byte(1), writeReply(7))
		f.Add(v, byte(0), writeReply(nil))
	}
	w, _ := newPuppetWorker(f)
	fd := w.feeds[0]
	f.Fuzz(func(t *testing.T, which, n byte, reply []byte) {
		v := verb(which % byte(verbs))
		tr := fd.tracks[0]
		fd.finished, tr.pending = nil, [verbs]*pendingCall{}
		runs := puppetRuns(fd, int(n%10))
		for _, r := range runs {
			fd.finished = append(fd.finished, &outcome{run: r, verb: v, counter: "done"})
			defer r.cancel(nil)
		}
		p := fd.group(tr, v)
		if p == nil {
			return
		}
		p.call.reply, _ = readReply(reply, 0)
		marks, isText := p.call.reply.(string)
		if v == verbFinish {
			marks, _, _ = strings.Cut(marks, " ") // then comes what followed
		}
		lane := tr.lanes[v].key
		news := fd.apply(tr, v, p)
		if !isText || marks == "stale" || len(marks) != len(runs) {
			require.Same(t, p, tr.pending[v], "it is sent again")
			require.NotEqual(t, lane, tr.lanes[v].key, "in another lane")
			require.Contains(t, p.call.keys, tr.lanes[v].key)
			require.Empty(t, news)
			require.Len(t, fd.running, len(runs))
			return
		}
		require.Nil(t, tr.pending[v])
		again := 0
		for i, r := range runs {
			held := fd.running[r.id] == r
			if v != verbRelease && marks[i] == 'c' {
				require.True(t, held)
				again++
			} else {
				require.False(t, held)
			}
		}
		require.Len(t, fd.finished, again)
		require.Len(t, news, len(runs)-again)
		for _, tell := range news {
			tell()
		}
		for i, r := range runs {
			require.Equal(t, marks[i] == 'l', errors.Is(context.Cause(r.ctx), ErrLeaseLost))
		}
	})
}

// FuzzExtendReply: an answer that does not say something of each run is an
// error and changes none of them.
func FuzzExtendReply(f *testing.F) {
	for _, marks := range []string{"kkk", "klk", "lll", "kcl", "ccc", "kk", "kkkk", "", "stale"} {
		f.Add(byte(3), writeReply(marks))
	}
	f.Add(byte(5), writeReply("stale"))
	f.Add(byte(1), writeReply(words("k")))
	f.Add(byte(1), writeReply(nil))
	f.Add(byte(1), writeReply(1))
	w, p := newPuppetWorker(f)
	fd := w.feeds[0]
	f.Fuzz(func(t *testing.T, n byte, reply []byte) {
		runs := puppetRuns(fd, int(n%10))
		var batch []extension
		for _, r := range runs {
			batch = append(batch, extension{r, r.token, r.visibility})
			defer r.cancel(nil)
		}
		p.replies = reply
		v, _ := readReply(reply, 0)
		marks, isText := v.(string)
		before := time.Now()
		err := fd.extend(batch)
		require.Equal(t, isText && marks != "stale" && len(marks) == len(runs), err == nil, "%v", err)
		for i, r := range runs {
			switch {
			case err != nil:
				require.NoError(t, r.ctx.Err())
				require.True(t, r.until.Before(before.Add(r.visibility)))
			case marks[i] == 'l':
				require.ErrorIs(t, context.Cause(r.ctx), ErrLeaseLost)
				require.True(t, r.until.Before(before.Add(r.visibility)), "it is not extended")
			default:
				require.Equal(t, marks[i] == 'c', errors.Is(context.Cause(r.ctx), ErrCancelled))
				require.False(t, r.until.Before(before.Add(r.visibility)))
			}
		}
	})
}

// FuzzEnqueueReply: after any answer to an enqueue the caller is told that it is
// not known what became of the jobs, or has an id of each that may be one.
func FuzzEnqueueReply(f *testing.F) {
	for _, text := range []string{
		"1750000000123456 ...", "1750000000123456 ..d " + seedID, "1750000000123456 ddd " + strings.Repeat(seedID+" ", 3),
		"1750000000123456 .d.", "1750000000123456 ..", "1750000000123456 ....", "1750000000123456", "1750000000123456 ", "",
		"1750000000123456 .x.", "1750000000123456 ..d no-id", "1750000000123456 ..d  ", "-1 ...", "9223372036854775806 ...", "9223372036854775807 ...",
		"281474976710655999 ...", "stale", "+1 ...", "0x10 ...", "1750000000123456  ...", "9007199254740000 ...",
	} {
		f.Add(byte(0b110), writeReply(text))
		f.Add(byte(0), writeReply(text))
	}
	f.Add(byte(0), writeReply(words("1750000000123456", "...")))
	f.Add(byte(0), writeReply(1))
	f.Add(byte(0), writeReply(nil))
	c, _ := newPuppet(f)
	b := &c.queue("emails").batch
	f.Fuzz(func(t *testing.T, unique byte, reply []byte) {
		var groups []*group
		var items []*item
		for i := range 3 {
			it := &item{kind: "k", queue: "emails", low: 1<<63 + uint64(i)}
			if unique>>i&1 != 0 {
				it.unique = &Unique{Key: "k", OnDuplicate: RejectDuplicate}
			}
			items = append(items, it)
			if i == 1 { // one caller with one, one with two
				groups[0].add(it)
			} else {
				groups = append(groups, newGroup(it))
			}
		}
		v, _ := readReply(reply, 0)
		if err := b.read(&call{script: scriptEnqueue, reply: v}, groups); err != nil {
			require.ErrorIs(t, err, ErrUnconfirmed)
			return
		}
		last := time.Time{}
		for _, it := range items {
			require.Equal(t, "emails", it.result.Queue)
			require.Equal(t, it.result.Duplicate, errors.Is(it.rejected(), ErrDuplicate))
			if it.result.Duplicate {
				require.NotNil(t, it.unique, "it has no key that could be held")
				continue
			}
			info := (&found{id: textOf(t, it.result.ID), record: seedRecord}).info(b.q)
			require.True(t, info.EnqueuedAt.After(last), "ids rise")
			last = info.EnqueuedAt
		}
	})
}
