package chaos

import "time"

var drains = strike("term", 250*time.Millisecond, 0, 5)

// mutants are bugs of the worker and of the producer, one each.
var mutants = []mutant{
	{name: "outcomes without an answer are dropped", file: "round.go",
		old: "if p != nil && p.call.reply != nil && p.call.err == nil {\n\t\t\tt.pending[v] = nil",
		new: `if p != nil && p.call.err != nil {
			t.pending[v] = nil
			f.mu.Lock()
			for _, out := range p.outs {
				f.forget(out.run)
			}
			f.mu.Unlock()
		} else if p != nil && p.call.reply != nil && p.call.err == nil {
			t.pending[v] = nil`,
		plan: lose("settle", "drop", 15), only: "plain", want: []string{HonestErrors}, always: true},
	{name: "outcomes without an answer are told as stored", file: "round.go",
		old: "if p != nil && p.call.reply != nil && p.call.err == nil {\n\t\t\tt.pending[v] = nil",
		new: `if p != nil && p.call.err != nil {
			t.pending[v] = nil
			f.mu.Lock()
			for _, out := range p.outs {
				f.forget(out.run)
				news = append(news, func() { out.stored(f.worker.client) })
			}
			f.mu.Unlock()
		} else if p != nil && p.call.reply != nil && p.call.err == nil {
			t.pending[v] = nil`,
		plan: lose("settle", "drop", 15), only: "plain", want: []string{EffectOnce}},
	{name: "a retry without an answer is dropped", file: "round.go",
		old: "if p != nil && p.call.reply != nil && p.call.err == nil {\n\t\t\tt.pending[v] = nil",
		new: `if p != nil && p.call.err != nil && verb(v) == verbRetry {
			t.pending[v] = nil
		} else if p != nil && p.call.reply != nil && p.call.err == nil {
			t.pending[v] = nil`,
		plan: lose("retry", "no reply", 15), only: "flaky doomed", want: []string{HonestErrors}},
	{name: "outcomes are sent again in another lane", file: "round.go",
		old: "if p.call.unsure && time.Since(p.call.first) > laneTrust {", new: "if p.call.unsure {",
		plan: lose("settle", "no reply", 15), only: "plain", want: []string{HonestErrors}},
	{name: "leases are not renewed", file: "pulse.go",
		old: "for len(all) > 0 {\n\t\tn := min(len(all), maxCallItems)", new: "for len(all) > 1<<40 {\n\t\tn := min(len(all), maxCallItems)",
		plan: calm, only: "slow", jobs: 12, want: []string{EffectOnce}},
	{name: "the clock of a lease starts with its answer", file: "lease.go",
		old: "sent: l.call.first,", new: "sent: time.Now(),",
		plan: lose("lease", "held", 60), window: 4 * time.Second, only: "plain", want: []string{Fenced}},
	{name: "a lost lease does not end its handler's context", file: "run.go",
		old: "r.cancel(ErrLeaseLost)\n", new: "\n",
		plan: stops, only: "epic", jobs: 12, want: []string{Fenced}},
	{name: "a lease without an answer is asked for anew", file: "lease.go",
		old: "if !forgotten && (l.call.unsure || !outage) {", new: "if !forgotten && !outage {",
		plan: lose("lease", "no reply", 15), only: "plain", want: []string{RetryLaw}},
	{name: "slots are not given back", file: "lease.go",
		old: "f.worker.slots.unused(f.index, held-started)\n", new: "\n",
		plan: calm, only: "plain", want: []string{Stuck}},
	{name: "handlers that outstay the drain are left", file: "serve.go",
		old: "f.cancelAll(ErrShutdown)\n", new: "f.cancelAll(ErrShutdown)\n\t\tf.drain(true)\n",
		plan: drains, only: "slow", want: []string{HonestErrors}},
	{name: "the drain waits for no handler", file: "feed.go",
		old: "return f.draining && len(f.running) == 0 && len(f.finished) == 0 && f.tracks[0].clear() && f.tracks[1].clear()", new: "return f.draining && f.tracks[0].leasing == nil && f.tracks[1].leasing == nil",
		plan: drains, only: "long", want: []string{HonestErrors}},
	{name: "the crashes of a lease are not passed on", file: "run.go",
		old: "r.job.Crashes, r.job.Run, r.job.run = l.crashes,", new: "r.job.Crashes, r.job.Run, r.job.run = 0,",
		plan: kills, only: "long", want: []string{RetryLaw}, always: true},
	{name: "poison is not buried", file: "run.go",
		old: "case r.decided && r.job.Crashes >= r.policy.maxCrashes:", new: "case false:",
		plan: calm, only: "poison", jobs: 10, want: []string{Stuck}},
	{name: "at most once is forgotten at the drain", file: "conclude.go",
		old: "if r.policy.maxAttempts == 1 && r.policy.maxCrashes == 1 {", new: "if false {",
		plan: drains, only: "once", want: []string{EffectOnce}},
	{name: "a failure spends no attempt", file: "conclude.go",
		old: "rec.Attempts++\n", new: "\n",
		plan: calm, only: "flaky", want: []string{RetryLaw}},
	{name: "the backoff is cut short", file: "conclude.go",
		old: "counter: counter, delay: delay,", new: "counter: counter, delay: delay / 4,",
		plan: calm, only: "flaky after snooze", want: []string{RetryLaw}},
	{name: "a permanent error is retried", file: "conclude.go",
		old: "return r.bury(reason, cause, true)\n", new: "_ = reason\n\t\treturn r.retry(cause, func() (time.Duration, bool) { return r.backoff(cause) })\n",
		plan: calm, only: "permanent", want: []string{RetryLaw}},
	{name: "a discarded job counts as done", file: "conclude.go",
		old: `counter: "discarded"`, new: `counter: "done"`,
		plan: calm, only: "discard", want: []string{RetryLaw}},
	{name: "an enqueue is sent again as another", file: "batch.go",
		old: "fresh := c == nil || !c.unsure\n", new: "fresh := true\n\t\tseq = l.next()\n",
		plan: lose("enqueue", "no reply", 15), only: "plain", want: []string{UnknownOnce}, always: true},
	{name: "an enqueue that is not confirmed is refused", file: "batch.go",
		old: "if g.unsure || g.flying && !g.call.withdraw() {", new: "if false {",
		plan: lose("enqueue", "held", 40), window: 3 * time.Second, only: "plain", want: []string{UnknownOnce}},
	{name: "the ids of a call are one off", file: "batch.go",
		old: "us++\n", new: "us += 2\n",
		plan: calm, only: "plain", jobs: 300, want: []string{UnknownOnce}},
	{name: "cancelling does not reach the handler", file: "pulse.go",
		old: "e.run.cancel(ErrCancelled)\n", new: "", contract: "TestCancelOfARunningJobEndsItsContext"},
	{name: "a newer lease is taken for one of the run that is being put back", file: "lease.go",
		old: "case held.sent:", new: "case held.sent && false:", contract: "TestANewerLeaseWaitsForTheAnswerToTheOutcome"},
	{name: "an expired job runs", file: "run.go",
		old: "if r.rec.ExpireIn <= 0 {", new: "if true {", contract: "TestExpiredJobsDieUnrun"},
	{name: "a job of another's kind is buried at once", file: "conclude.go",
		old: ">= w.cfg.UnknownKindGrace {", new: ">= 0 {", contract: "TestAnUnknownKindIsDeadAfterTheGrace"},
}
