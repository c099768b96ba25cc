package pawl

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// runNothing has jobs only take their slots.
func runNothing(t *testing.T, w *Worker) {
	t.Helper()
	w.runners = newRunners(func(*run) {})
	t.Cleanup(func() { close(w.runners.stop) })
}

// While the outcome of a job is on its way on one track, the other is answered a
// newer lease of it. What becomes of that is for the answer to say.
func TestANewerLeaseWaitsForTheAnswerToTheOutcome(t *testing.T) {
	t.Parallel()
	const newer = "1750000000300000-abc"
	for _, c := range []struct {
		name, mark     string
		verb           verb
		room, suspect  bool
		starts, adopts bool
		used           int
	}{
		{name: "it was put back, and is run anew", verb: verbRetry, mark: "k", room: true, starts: true, used: 1},
		{name: "it was released, and is run anew", verb: verbRelease, mark: "k", room: true, starts: true, used: 1},
		{name: "it was buried, and redriven", verb: verbBury, mark: "k", room: true, starts: true, used: 1},
		{name: "it was put back, and there is no room for it", verb: verbRetry, mark: "k", starts: true},
		{name: "it was put back, and is a suspect", verb: verbRetry, mark: "k", room: true, suspect: true, starts: true},
		{name: "it was lost, and the new lease stores it", verb: verbSettle, mark: "l", room: true, adopts: true},
		{name: "it was lost, and no slot is given back that there was not", verb: verbSettle, mark: "l", adopts: true},
		{name: "it was cancelled, and the new lease ends it", verb: verbRetry, mark: "c", room: true, adopts: true},
		{name: "it was lost, and the job was replaced", verb: verbSettle, mark: "l", room: true, starts: true, used: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, _ := newPuppetWorker(t)
			runNothing(t, w)
			fd := w.feeds[0]
			fd.index = 0
			first, second := fd.tracks[0], fd.tracks[1]
			r := puppetRuns(fd, 1)[0]
			r.finished = true
			out := &outcome{run: r, verb: c.verb, counter: "done"}
			fd.finished = append(fd.finished, out)
			p := fd.group(first, c.verb)
			first.pending[c.verb] = p

			job := leased{id: r.id, token: newer, record: seedRecord, sent: time.Now(), suspect: c.suspect}
			if c.adopts {
				job.flags = "x"
			}
			held := 0
			if c.room {
				held = w.slots.take(0, 1)
			}
			took := fd.start(job, c.room)
			w.slots.unused(0, held-map[bool]int{true: 1}[took]) // as receive does
			require.Same(t, r, fd.running[r.id], "nothing happens before the answer")
			require.Equal(t, seedToken, r.token)
			require.Nil(t, second.pending[c.verb])

			p.call.reply, first.pending[c.verb] = c.mark, nil
			fd.apply(first, c.verb, p)
			now := fd.running[r.id]
			require.NotNil(t, now)
			require.Equal(t, newer, now.token)
			require.Equal(t, c.starts, now != r)
			require.Nil(t, r.next)
			require.Equal(t, c.used, w.slots.used)
			if c.adopts {
				require.Len(t, fd.finished, 1, "the outcome is sent again, by the new lease")
				require.NoError(t, context.Cause(now.ctx))
			}
		})
	}
}

// A lease whose answer comes after that of a newer one of the same job is that of
// nobody: its token has been replaced.
func TestAnOlderLeaseThatIsAnsweredLateChangesNothing(t *testing.T) {
	t.Parallel()
	w, _ := newPuppetWorker(t)
	fd := w.feeds[0]
	r := puppetRuns(fd, 1)[0]
	for _, older := range []string{seedToken, "1-abc"} {
		require.False(t, fd.start(leased{id: r.id, token: older, record: seedRecord, sent: time.Now()}, true))
		require.Same(t, r, fd.running[r.id])
		require.Equal(t, seedToken, r.token)
	}
}

// A lease that is asked for while Redis cannot be reached may take as long as a
// dial does. The slots are for the queues that can be.
func TestALeaseDuringAnOutageHoldsNoSlot(t *testing.T) {
	t.Parallel()
	c, _ := newPuppet(t)
	w, err := NewWorker(c, WorkerConfig{Queues: Queues("away", "here"), Concurrency: 3})
	require.NoError(t, err)
	away, here := w.feeds[0], w.feeds[1]
	w.outages.begin(outage{feed: away}, context.DeadlineExceeded)
	defer w.outages.end(outage{feed: away})
	_, calls := away.gather()
	require.Len(t, calls, 1)
	require.Equal(t, scriptLease, calls[0].script)
	require.Equal(t, 3, calls[0].args[1], "it asks for as many as there are")
	require.Zero(t, w.slots.used)
	require.True(t, w.suspect.TryLock(), "nor is another kept from the suspects")
	w.suspect.Unlock()
	_, calls = here.gather()
	require.Len(t, calls, 1)
	require.Equal(t, 3, calls[0].args[1])
	require.Equal(t, 3, w.slots.used)
}

// While the answer is awaited the lease may run out, and come again as that of a
// suspect, without the slot's room and the right to run that the first one had.
func TestAnAwaitedLeaseThatComesAgainAsASuspectGoesBack(t *testing.T) {
	t.Parallel()
	w, _ := newPuppetWorker(t)
	runNothing(t, w)
	fd := w.feeds[0]
	r := puppetRuns(fd, 1)[0]
	r.finished = true
	fd.finished = append(fd.finished, &outcome{run: r, verb: verbRetry, counter: "retried"})
	p := fd.group(fd.tracks[0], verbRetry)
	require.Equal(t, 1, w.slots.take(0, 1))
	again := leased{id: r.id, token: "1750000000300000-abc", record: seedRecord, sent: time.Now()}
	require.True(t, fd.start(again, true))
	again.token, again.suspect = "1750000000400000-abc", true
	require.False(t, fd.start(again, true))
	p.call.reply = "k"
	fd.apply(fd.tracks[0], verbRetry, p)
	require.False(t, fd.running[r.id].suspect)
	require.Len(t, fd.finished, 1)
	require.True(t, fd.running[r.id].slotless, "it is not run")
	require.Zero(t, w.slots.used)
	require.True(t, w.suspect.TryLock(), "it was nobody's, and still is")
}

func TestAnAwaitedLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	w, server := newPuppetWorker(t)
	runNothing(t, w)
	fd := w.feeds[0]
	r := puppetRuns(fd, 1)[0]
	r.finished, r.sent = true, true
	old := leased{id: r.id, token: "1750000000300000-abc", record: seedRecord, sent: time.Now().Add(-time.Minute)}
	require.True(t, fd.start(old, true))
	server.replies = writeReply("k")
	require.NoError(t, fd.renew())
	require.Greater(t, time.Until(r.next.until), 20*time.Second)
	require.True(t, newRun(fd, r.next.leased).until.Equal(r.next.until))
}

// A queue that cannot be reached does not take part in the sharing of slots, be it
// that it would like to have more of them.
func TestAProbeDuringAnOutageLeavesOtherQueuesTheirSlots(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		c, _ := newPuppet(t)
		w, err := NewWorker(c, WorkerConfig{Queues: Queues("away", "here"), Concurrency: 2, Strict: strict})
		require.NoError(t, err)
		w.slots.rest(0)
		require.Equal(t, 1, w.slots.take(1, 1), "a long job")
		w.outages.begin(outage{feed: w.feeds[0]}, context.DeadlineExceeded)
		_, calls := w.feeds[0].gather()
		require.Len(t, calls, 1)
		for range 3 {
			require.Equal(t, 1, w.slots.take(1, 2))
			w.slots.give(1, 1)
		}
	}
}

// The pause after a failed round trip ends, however late loop looks at the clock.
func TestThePauseAfterAFailureEndsByItself(t *testing.T) {
	t.Parallel()
	w, _ := newPuppetWorker(t)
	fd := w.feeds[0]
	fd.resume = time.Now().Add(20 * time.Millisecond)
	tr, _ := fd.gather()
	require.Nil(t, tr)
	<-time.After(time.Until(fd.resume)) // as if it had not run meanwhile
	woken := make(chan struct{})
	go func() { fd.wait(); close(woken) }()
	select {
	case <-woken:
	case <-time.After(time.Minute):
		require.Fail(t, "it waits for nothing")
	}
	tr, _ = fd.gather()
	require.NotNil(t, tr)
}

func TestAllHooksAreToldThoughOneEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	var told []int
	done := make(chan struct{})
	go func() {
		defer close(done)
		var news []func()
		for i := range 6 {
			news = append(news, func() {
				told = append(told, i)
				if i%2 == 1 {
					runtime.Goexit()
				}
			})
		}
		tellAll(news)
	}()
	<-done
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, told)
}

// It comes when other calls of this worker have waited as long, and what ran out
// meanwhile may be the worker's own.
func TestALeaseThatWaitedForAConnectionTakesNoExpiredLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &feed{worker: &Worker{cfg: WorkerConfig{VisibilityTimeout: 6 * time.Second}}}
		says := func(e takesExpired) string {
			word, err := e.MarshalBinary()
			require.NoError(t, err)
			return string(word)
		}
		asked := f.mayTakeExpired()
		require.Equal(t, "1", says(asked))
		<-time.After(2*time.Second - 1)
		require.Equal(t, "1", says(asked))
		<-time.After(1)
		require.Equal(t, "0", says(asked))
		f.cautious = time.Now().Add(time.Second)
		require.Equal(t, "0", says(f.mayTakeExpired()))
		<-time.After(time.Second + 1)
		require.Equal(t, "1", says(f.mayTakeExpired()))
		f.unrenewed = true
		require.Equal(t, "0", says(f.mayTakeExpired()))
	})
}
