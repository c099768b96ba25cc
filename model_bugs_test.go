//go:build !race

package pawl

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// modelBug is a bug to plant: a text that a script has and what it becomes.
type modelBug struct{ name, script, old, bad string }

var modelBugs = []modelBug{
	// Fencing.
	{"anybody may end a lease", "", "and token == tokens[i] and", "and token and"},
	{"a lease given back can be ended", "", "tonumber(scores[i]) ~= 0", "true"},
	{"a live holder does not get its crash back", "", "if crashes > 0 then", "if crashes > 99 then"},
	{"a crash is given back twice", "", "run_text(token, crashes - 1, flags, '', progress_text)", "run_text(token, crashes - 1, flags, before_of[i], progress_text)"},
	{"tokens do not rise", "lease", "math.max(us, tonumber(string.match(meta[3] or '', '^%d+$') or '0') + 1)", "math.floor(us / 1000000) * 1000000"},
	{"a holder does not hear of a cancellation", "extend", "return answer", "return (string.gsub(answer, 'c', 'k'))"},
	// Lanes.
	{"an answer is not kept", "settle", "lane_keep(KEYS[7], ARGV[1], answer)", ""},
	{"lanes compare for equality alone", "", "if not last or last < seq then return nil end\n  if last > seq then return 'stale' end",
		"if last ~= seq then return nil end"},
	{"a lease that is sent again takes more", "lease", "if list then", "if false then"},
	{"a lease that is sent again forgets its marks", "lease", "cancel_s .. mark_s .. progress_text })", "cancel_s .. progress_text })"},
	// Homes and places.
	{"settle leaves the lease", "settle", "redis.call('ZREM', KEYS[3], unpack(ended))", ""},
	{"settle leaves the record", "settle", "redis.call('HDEL', KEYS[2], unpack(ended))", "gone = 0"},
	{"retry leaves the run entry", "retry", "redis.call('HDEL', KEYS[5], unpack(back))", ""},
	{"retry leaves the entry in the stream", "retry", "redis.call('XDEL', KEYS[1], unpack(back))", ""},
	{"a due job stays due when leased", "lease", "redis.call('ZREM', KEYS[3], unpack(due_gone))", "due_gone = {}"},
	{"a due job gets no rank", "lease", "if priority > 0 then", "if priority > 99 then"},
	{"the cursor stands still", "lease", "cursor_id = id\n", "\n"},
	{"redrive leaves the post-mortem", "redrive", "redis.call('XDEL', KEYS[6], unpack(graves))", ""},
	{"delete leaves the index", "delete", "redis.call('HDEL', KEYS[2], unpack(gone))", ""},
	{"a job dies after its cancel", "bury", "if marks[i] == 'k' then\n    gone", "if marks[i] ~= 'l' then\n    marks[i] = 'k'\n    gone"},
	{"a job is discarded after its cancel", "settle", "counter ~= 'discarded' then", "true then"},
	{"a job that was done is not, because of its cancel", "settle", "counter ~= 'discarded' then", "counter == 'cancelled' then"},
	{"cancel ends a job that runs", "cancel", "deadline > now", "deadline > now + 4000"},
	// Choice and order.
	{"the lowest priority goes first", "", "(9 - priority) * 10000000000000", "priority * 10000000000000"},
	{"suspects are not counted", "lease", "suspects = suspects - 1", ""},
	{"giving back counts as a crash", "lease", "tonumber(page[2 * i]) ~= 0, leased_from", "true, leased_from"},
	{"the sources do not take turns", "lease", "string.sub('1230', turn + 1, turn + 1)", "'0'"},
	{"a due job runs a millisecond early", "lease", "take_waiting(KEYS[3], num(now)", "take_waiting(KEYS[3], num(now + 1)"},
	// Times.
	{"a client's clock, an hour ahead", "extend", "now_us() / 1000", "now_us() / 1000 + 3600000"},
	{"a delay is rounded down", "enqueue", "ready_from = math.ceil(us / 1000)", "ready_from = now"},
	{"ids follow the clock back", "enqueue", "us = math.max(us, last + 1)", "us = us + 0"},
	// Unique keys.
	{"settle does not free the key", "settle", "unique_free(free[1], free[2], now)", "local _ = free"},
	{"a key is freed for another's holder", "", "if holder ~= id then return nil end", ""},
	{"a key is never free when started", "", "if mode == 's' and", "if mode == 'x' and"},
	{"a batch takes a key twice", "enqueue", "holder = claim and claim.id or", "holder ="},
	{"a window ends with its job", "bury", "if till > now then", "if till > now + 99999 then"},
	{"a key is free though nobody ran its job", "release", "run_text(token, crashes, 'u', before_token, progress_text)", "run_text(token, crashes, '', before_token, progress_text)"},
	{"a key is taken back from a job that ran", "release", "and not string.find(flags_s, 'r', 1, true)", ""},
	{"a job that nobody ran has started once it is rescheduled", "reschedule", "and not string.find(flags_s, 'u', 1, true)", ""},
	{"a job that was given back unrun never starts", "lease", "cancel_s or cancel_s .. 'r'", "'u' or cancel_s .. 'r'"},
	// Idempotency keys.
	{"a key that is in use is taken", "claim", "return score and tonumber(score) ~= 0", "return false"},
	{"a key is in use by a job that was given back", "claim", "return score and tonumber(score) ~= 0", "return score"},
	{"two of one call take a key", "claim", "if taken[key] then", "if false then"},
	{"a job waits for its own mark", "claim", "elseif not (mode == 'r' and holder_id == id) then", "else"},
	{"a mark ends while its job runs", "claim", "redis.call('SET', write[1], write[2])", "redis.call('SET', write[1], write[2], 'PX', 5000)"},
	{"a key that is done is forgotten", "settle", "tonumber(window) or 0 }", "0 }"},
	{"a window is cut short", "settle", "now + 1 + window", "now + window"},
	{"a key is done for ever", "settle", ", 'PXAT', till_text)", ")"},
	{"a key is done for another's run", "settle", "if holder_id ~= id and", "if false and"},
	{"what ends beside it is not heeded", "settle", "if #idems > 0 then", "redis.call('ZREM', KEYS[3], unpack(ended)) if #idems > 0 then"},
	{"another's mark is freed", "", "elseif holder_id == id and mode == 'r' then", "elseif mode == 'r' then"},
	{"bury leaves the mark", "bury", "idem_end(e[1], e[2], 0, KEYS[3], now)", "local _ = e"},
	{"retry leaves the mark", "retry", "idem_end(e[1], e[2], 0, KEYS[4], now)", "local _ = e"},
	{"cancel leaves the mark", "cancel", "idem_end(idem_key, id, 0, KEYS[5], now)", "local _ = idem_key"},
	{"purge leaves the mark", "purge", "idem_end(e[1], e[2], 0, KEYS[5], now)", "local _ = e"},
	{"a job that is skipped is not done", "settle", "if counter == 'skipped' or counter", "if counter"},
	// What is kept.
	{"finish leaves the lease", "finish", "redis.call('ZREM', KEYS[3], unpack(ended))", ""},
	{"finish leaves the record", "finish", "redis.call('HDEL', KEYS[2], unpack(ended))", "gone = 0"},
	{"finish does not free the key", "finish", "unique_free(free[1], free[2], now)", "local _ = free"},
	{"finish lets no job behind go", "finish", "unique_pass_all(passes, KEYS[2], KEYS[8], KEYS[9], waiting, now)", ""},
	{"a lost holder's result is kept", "finish", "if marks[i] == 'k' then\n    ended", "if true then\n    ended"},
	{"a kept job has no time", "", "redis.call('ZADD', done_at, unpack(times))", "local _ = times"},
	{"a kept job is kept too short", "finish", "num(now + ms)", "num(now + ms - 1)"},
	{"what is over is kept on", "", "redis.call('ZRANGEBYSCORE', done_at, '-inf', num(now), 'LIMIT', 0, most)", "{}"},
	{"a millisecond too early", "", "'-inf', num(now), 'LIMIT'", "'-inf', num(now + 1), 'LIMIT'"},
	{"what is let go leaves its record", "", "redis.call('HDEL', done, unpack(stale))", ""},
	{"what is let go leaves its time", "", "redis.call('ZREM', done_at, unpack(stale))", ""},
	{"a kept job is found after its time", "inspect", "tonumber(till) > now and", ""},
	{"a list shows what is over", "list", "redis.call('ZCOUNT', KEYS[9], '-inf', now_text)", "0"},
	{"stats count what is over", "stats", "redis.call('ZCOUNT', KEYS[8], '(' .. now_text, '+inf')", "redis.call('ZCARD', KEYS[8])"},
	{"a cancelled job leaves nothing", "cancel", "if kept_record then", "if false then"},
	{"a superseded job leaves nothing", "retry", "if #told > 0 then kept_write", "if false then kept_write"},
	{"a job that is put back is kept", "retry", "    local at = from + tonumber", "    bodies[#bodies + 1] = id bodies[#bodies + 1] = 'x' times[#times + 1] = '1' times[#times + 1] = id kept_write(KEYS[10], KEYS[11], {}, bodies, times)\n    local at = from + tonumber"},
	{"what is left does not say how it ended", "", ".. field_text ..", ".. '' .."},
	{"forget leaves the time", "forget", "redis.call('ZREM', KEYS[2], ARGV[i])", ""},
	// What follows.
	{"nothing follows", "finish", "if follow then follow() end", ""},
	{"what follows is not counted", "finish", "if follow then follow_count() end", ""},
	{"what was lost is followed", "finish", "    for word_at = from + 7, (places[i + 1] or at) - 1 do list[#list + 1] = ARGV[word_at] end\n  end", "  end for word_at = from + 7, (places[i + 1] or at) - 1 do list[#list + 1] = ARGV[word_at] end"},
	{"a follow-up finds its key held by the one that ends", "finish", "ending[id] = true", "local _ = id"},
	{"a follow-up takes a key from who waits behind it", "finish", "holder = next_id", "holder = nil"},
	{"a follow-up heeds no window", "finish", "elseif till <= now then", "else"},
	{"a follow-up parks behind a job that ends", "finish", "change = ''\n", "\n"},
	{"follow-ups push too many tokens", "finish", "plan.waiting = redis.call('LLEN', KEYS[9])", ""},
	// Replacing, and waiting behind who runs.
	{"a job behind another is not let go when that is done", "settle", "unique_pass_all(passes, KEYS[2], KEYS[8], KEYS[9], waiting, now)", ""},
	{"nor when it is dead", "bury", "passes[#passes + 1] = { key, till, next_id }", "frees[#frees + 1] = { key, till }"},
	{"nor when it is cancelled", "cancel", "if next_id then", "if false then"},
	{"nor when it is purged", "purge", "if #passes > 0 then", "if false then"},
	{"what an earlier holder began has not started", "retry", "if string.find(flags_s, 'r', 1, true) then record", "if false then record"},
	{"a failed run is tried again before a newer job", "retry", "if next_id and is_parked", "if false and is_parked"},
	{"a job that is not tried again keeps its record", "retry", "redis.call('HDEL', KEYS[2], unpack(over))", ""},
	{"a job behind another forgets its delay", "", "if at < now then at = now end", "at = now"},
	{"nobody hears of a job that is let go", "", "ready = ready + 1\n    end\n  end\n  wake_push(wake, ready, waiting)", "end\n  end"},
	{"a key names a job that was cancelled", "cancel", "redis.call('SET', key, rest_text)", "local _ = 1"},
	{"a key names a job that was purged", "purge", "redis.call('SET', leave[1], leave[2])", "local _ = 1"},
	{"a parked job is the next work", "lease", "'(1000000000000000'", "'+inf'"},
	{"a parked job is delayed, by stats", "stats", "'+inf') - parked", "'+inf')"},
	{"a parked job is rescheduled", "reschedule", "elseif is_parked(due) then", "elseif false then"},
	{"a running job is replaced", "enqueue", "claim.runs = deadline and (deadline ~= 0 or", "claim.runs = deadline and (deadline > now or"},
	{"a job that is to be cancelled is replaced", "enqueue", "(deadline ~= 0 or string.find(flags_s, 'c', 1, true) ~= nil)", "deadline ~= 0"},
	{"two jobs wait behind one", "enqueue", "if next_id and is_parked", "if false and is_parked"},
	{"a job waits behind one that runs, uncalled for", "enqueue", "claim.runs and change == 'l'", "claim.runs"},
	{"replacing costs a job its place", "enqueue", "claim.since = math.min(at, now)", "claim.since = now"},
	{"replacing leaves the entry in the stream", "enqueue", "redis.call('XDEL', keys.jobs, unpack(moved))", ""},
	{"replacing leaves the lease", "enqueue", "redis.call('ZREM', keys.leases, unpack(moved))", ""},
	{"replacing leaves the run entry", "enqueue", "redis.call('HDEL', keys.runs, unpack(moved))", ""},
	{"replacing leaves the rank", "enqueue", "redis.call('ZREM', keys.prio, unpack(moved))", ""},
	{"the first of a call wins", "enqueue", "(%d+)'))]] = later", "(%d+)'))]] = i"},
	{"replacing begins no window", "enqueue", "claim.till = math.max(claim.till, till)", ""},
	{"a replaced job holds its key as the old one did", "enqueue", "if not claim.parked then claim.mode = mode end", ""},
	{"a key is free though a job waits behind its holder", "enqueue", "id, id, true, true, 'd'", "id, id, true, true, claim.mode"},
	// Progress.
	{"anybody may tell of progress", "progress", "if marks[i] ~= 'l' then", "if entries[i] then"},
	{"progress hides a cancellation", "progress", "run_text(token, crashes, flags_s, before_token, ARGV", "run_text(token, crashes, '', before_token, ARGV"},
	{"progress costs a late holder its crash", "progress", "run_text(token, crashes, flags_s, before_token, ARGV", "run_text(token, crashes, flags_s, '', ARGV"},
	{"a late progress is stored", "progress", "if seen then return seen end", ""},
	{"a crash that is taken back takes the progress with it", "", "flags, '', progress_text)", "flags, '', '')"},
	{"a cancel forgets the progress", "cancel", "flags_s, before_token, progress_text))", "flags_s, before_token, ''))"},
	{"what is given back unrun forgets the progress", "release", "'u', before_token, progress_text)", "'u', before_token, '')"},
	{"a new lease forgets the progress of the run before", "lease", "before_token, progress_text = run_before_token, run_progress_text", "before_token = run_before_token"},
	{"a lease does not tell of the progress", "lease", "cancel_s .. mark_s .. progress_text\n", "cancel_s .. mark_s\n"},
	{"a lease that is sent again does not either", "lease", "cancel_s .. mark_s .. progress_text })", "cancel_s .. mark_s })"},
	// Waiting.
	{"a job that waits is over", "over", "redis.call('HEXISTS', KEYS[2], id) == 1", "false"},
	{"a dead job is gone", "over", "if dead and dead[2][3] == 'p'", "if false and dead"},
	{"what is kept is not found", "over", "if kept_record then", "if false then"},
	{"what was kept is found for ever", "over", "till and tonumber(till) > now and", "till and"},
	// Counts and tokens.
	{"settle counts twice", "settle", "(counts[counter] or 0) + 1", "(counts[counter] or 0) + 2"},
	{"a failed attempt is not counted", "retry", "if counter == 'retried' then", "if false then"},
	{"stats take what was given back for running", "stats", "'(' .. now_text, '+inf')", "'-inf', '+inf')"},
	{"nobody is told of what is left", "lease", "tokens = ready", "tokens = 0"},
	// Operating a queue.
	{"a paused queue is leased from", "lease", "if paused > now then", "if paused > now + 3000 then"},
	{"a resume is not heard", "pause", "redis.call('HDEL', KEYS[1], 'paused')", ""},
	{"a pause wakes nobody", "pause", "wake_push(KEYS[2], ms == 0 and 2 or 1, waiting)", ""},
	{"reschedule leaves the lease", "reschedule", "redis.call('ZREM', KEYS[5], id)", ""},
	{"reschedule leaves the entry in the stream", "reschedule", "if fresh then redis.call('XDEL', KEYS[1], id) end", ""},
	{"reschedule forgets the crashes", "reschedule", "record = head_run(record, crashes)", ""},
	{"reschedule moves a job that runs", "reschedule", "deadline > now then", "deadline > now + 4000 then"},
	{"reschedule loses a cancellation", "reschedule", "elseif string.find(flags_s, 'c', 1, true) then", "elseif false then"},
	{"purge takes a job of another state", "purge", "state == ARGV[2] and", ""},
	{"purge takes a job that runs", "purge", "not (deadline and deadline > now)", "true"},
	{"purge does not free the key", "purge", "unique_free(free[1], free[2], now)", "local _ = free"},
	{"delete takes whichever death", "delete", "if grave == entry then", "if grave then entry = grave"},
	{"a young dead job is dropped", "delete", "(at or 0) <= before", "true"},
	{"a page of a list repeats a job", "list", "[1] > last_id then", "[1] >= last_id then"},
	{"a page of a list begins too late", "list", "return low\n", "return low + 1\n"},
	// Minutes.
	{"a minute is noted after it has counted", "settle", "minute_note(KEYS[6], KEYS[5], minute)\n", "local late = true\n"},
	{"a minute is noted again", "", "if noted and minute <= noted and", "if noted and minute < noted and"},
}

func TestModelCatchesPlantedBugs(t *testing.T) {
	t.Parallel()
	const histories, steps = 4000, 60 // the rarest are met once in 1000, on average
	for _, bug := range modelBugs {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			var names []string
			if bug.script != "" {
				names = append(names, bug.script)
			}
			scripts, times := modelTable().replace(bug.old, bug.bad, names...)
			require.NotZero(t, times, "no script has the text that the bug replaces")
			rig := modelMini(t, scripts)
			random := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(bug.name)))) // whatever else is in the list
			done := 0
			for range histories {
				x, err := rig.start(func(n int, _ string) int { return random.IntN(n) })
				require.NoError(t, err)
				for range steps {
					done++
					if err := x.step(); err != nil {
						what, _, _ := strings.Cut(err.Error(), "\nhistory")
						t.Logf("caught at operation %d: %s", done, what)
						return
					}
				}
			}
			require.Fail(t, "not caught")
		})
	}
}
