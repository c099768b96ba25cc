package pawl_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// N1.
func TestEachPageOfAnEnqueueWithALostAnswerIsThereOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, fault := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, server, 500*time.Millisecond)
			if name == "the request stalls" || name == "the reply stalls" {
				fault = redistest.Stall(700 * time.Millisecond)
			}
			q := f.Queue(freshQueue())
			for _, k := range []int{1, 3, 5} { // the first attempt of each page
				f.Proxy.On("enqueue", k, fault)
			}
			const jobs = 1100
			got, err := q.EnqueueMany(within(t, time.Minute), pawl.Items(make([]note, jobs), pawl.Header{Key: "k", Value: "v"}))
			require.NoError(t, err)
			_, err = q.Enqueue(within(t, time.Minute), note{}) // a newer call
			require.NoError(t, err)
			f.Proxy.Release()
			require.Equal(t, pawl.Counters{Enqueued: jobs + 1}, f.Total(t, q.Name()))
			there := map[pawl.ID]bool{}
			for job, err := range f.past.Queue(q.Name()).List(t.Context(), pawl.StateReady, pawl.Filter{}) {
				require.NoError(t, err)
				there[job.ID] = true
			}
			require.Len(t, there, jobs+1)
			for _, job := range got {
				require.True(t, there[job.ID], "the first answer is the answer")
				delete(there, job.ID)
			}
		})
	}
}

// N1, case 9. The second attempt must not find the first one's job, and call
// itself a duplicate; nor count one twice.
func TestADuplicateWithALostAnswerIsToldAndCountedOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eachCut(t, server, "enqueue", func(t *testing.T, f *faulty, fault redistest.Fault) {
		q := f.Queue(freshQueue())
		key := pawl.Unique{Key: "k"}
		f.Proxy.On("enqueue", 1, fault)
		holder, err := q.Enqueue(t.Context(), note{1}, key)
		require.NoError(t, err)
		require.False(t, holder.Duplicate)
		f.Proxy.On("enqueue", f.Proxy.Calls("enqueue")+1, fault)
		again, err := q.Enqueue(t.Context(), note{2}, key)
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Equal(t, holder.ID, again.ID)
		_, err = q.Enqueue(t.Context(), note{3}) // a newer call
		require.NoError(t, err)
		f.Proxy.Release()
		require.Equal(t, pawl.Counters{Enqueued: 2, Duplicate: 1}, f.Total(t, q.Name()))
	})
}
