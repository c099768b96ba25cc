package redistest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// phase is how far a server has come, as its log tells.
type phase int

const (
	listening phase = iota // it accepts connections; it may be loading
	ready                  // it has loaded its data
	watching               // it is a Sentinel, and up
)

// The words are the same in Redis 6.2 to 8 and Valkey.
var phaseWords = [...][]byte{
	listening: []byte("Server initialized"),
	ready:     []byte("Ready to accept connections"),
	watching:  []byte("Sentinel ID is"),
}

// process is one run of a server. Its log is kept, and watched for phases.
type process struct {
	cmd    *exec.Cmd
	exited <-chan struct{}

	mu      sync.Mutex
	log     bytes.Buffer
	reached [len(phaseWords)]chan struct{}
}

// startProcess starts a server, with env beside this process's own environment.
func startProcess(name string, args []string, env ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.Env = append(os.Environ(), env...)
	for i := range p.reached {
		p.reached[i] = make(chan struct{})
	}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = time.Second // a forked saver may hold the pipe open
	var err error
	p.exited, err = StartTied(p.cmd)
	return p, err
}

// StartTied starts a process that ends with this one, however that ends (on
// Linux), and waits for it: the channel is closed once it has ended.
//
// It is started from a goroutine that keeps its OS thread until the process has
// ended. That is what makes Pdeathsig usable: the kernel sends the signal when
// the *thread* that forked ends, not the process, and the Go runtime may end a
// thread whenever it likes unless a goroutine is locked to it. It costs a
// sleeping thread a process, and leaves no goroutine behind.
func StartTied(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	dieWithParent(cmd)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // most end by a signal, which is an error
			close(ended)
		}
	}()
	return ended, <-started
}

// Write takes the server's log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Write(b)
	for i, word := range phaseWords {
		select {
		case <-p.reached[i]:
		default:
			if bytes.Contains(p.log.Bytes(), word) {
				close(p.reached[i])
			}
		}
	}
	return len(b), nil
}

func (p *process) await(want phase, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	why := "ended at once"
	select {
	case <-p.reached[want]:
		return nil
	case <-p.exited:
	case <-timer.C:
		why = "not ready in " + limit.String()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %s; its log:\n%s", p.cmd, why, p.log.Bytes())
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
}

// freePort picks a port below the range from which kernels take the ports of
// outgoing connections, so that no client sits on a killed server's port when
// it restarts. Redis refuses to start if another server was quicker.
func freePort() int {
	for {
		port := 12000 + rand.IntN(10000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
}
