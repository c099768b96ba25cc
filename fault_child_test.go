package pawl_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// childEnv has the test binary be another process: "<what> <addr> <visibility>".
const childEnv = "PAWL_TEST_CHILD"

// child serves queue q and tells on its standard output what happens; or it
// redrives queue mail, or is a victim. It ends with the process that started it.
func child(words string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	what, rest, _ := strings.Cut(words, " ")
	if what == "victim" {
		beVictim(rest)
		return
	}
	addr, visibility, _ := strings.Cut(rest, " ")
	v, _ := time.ParseDuration(visibility)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	c, err := pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{teller{}}})
	if err != nil {
		panic(err)
	}
	if what == "redrive" {
		fmt.Println("redrive")
		fmt.Println(c.Queue("mail").Dead().RedriveAll(context.Background(), pawl.DeadFilter{}, pawl.Redrive{Over: time.Minute}))
		return
	}
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: v})
	if err != nil {
		panic(err)
	}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		fmt.Println("started", job.Args.N)
		switch {
		case what == "ticks":
			fmt.Println("tick", job.ScheduledAt.UnixMilli(), job.ID)
		case what == "hang":
			<-ctx.Done()
			fmt.Println("cause", context.Cause(ctx))
		case what == "poison" && job.Args.N == 7:
			os.Exit(3)
		case what == "poison":
			<-time.After(5 * time.Millisecond)
		}
		return nil
	})
	fmt.Println("run", w.Run(context.Background()))
}

type teller struct{}

func (teller) Done(_ context.Context, e pawl.Event)     { tell("done", e) }
func (teller) Dead(_ context.Context, e pawl.DeadEvent) { tell("dead", e.Event) }

func tell(what string, e pawl.Event) {
	fmt.Println(what, e.Job.ID)
	s, err := e.Job.Client().Queue("q").Stats(context.Background())
	if err == nil && s.Ready+s.Delayed+s.Running == 0 {
		fmt.Println("empty")
	}
}

func (teller) LeaseLost(_ context.Context, e pawl.Event) { fmt.Println("lost", e.Job.ID) }

// process is a child and what it tells.
type process struct {
	*exec.Cmd
	lines  *bufio.Scanner
	exited <-chan struct{}
}

func startChild(t *testing.T, what, addr string, visibility time.Duration) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", childEnv, what, addr, visibility))
	return spawn(t, cmd)
}

// spawn starts the test binary as a child, which ends with the test, or after
// childTime, so that nobody awaits its word for ever.
func spawn(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // closes when this process ends
	require.NoError(t, err)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.Close() })
	cmd.Stdout = in
	exited, err := redistest.StartTied(cmd) // a frozen one would not see its input end
	require.NoError(t, err)
	require.NoError(t, in.Close())
	p := &process{cmd, bufio.NewScanner(out), exited}
	t.Cleanup(p.kill)
	late := time.AfterFunc(childTime, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	return p
}

const childTime = time.Minute

// kill ends the child, frozen or not.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.exited
}

// end waits until the child has ended by itself.
func (p *process) end() *os.ProcessState {
	<-p.exited
	return p.ProcessState
}

// await reads until a line begins with word; false if the child ended first.
func (p *process) await(word string) bool {
	for p.lines.Scan() {
		if strings.HasPrefix(p.lines.Text(), word) {
			return true
		}
	}
	return false
}
