package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawlq/pawl/internal/redistest"
)

// slot is a place for a child process: one that ends before its time is started
// again, under a new name.
type slot struct {
	r     *runner
	cfg   childConfig // of the next one
	base  string
	done  chan struct{} // closed when there is no next one
	mu    sync.Mutex
	count int
	name  string
	cmd   *exec.Cmd
	shot  bool // by the runner
	last  bool // whatever becomes of it now
}

func (r *runner) newSlot(base string, cfg childConfig) *slot {
	s := &slot{r: r, cfg: cfg, base: base, done: make(chan struct{})}
	r.keeping.Go(s.keep)
	return s
}

func (s *slot) keep() {
	defer close(s.done)
	for {
		exited, ok := s.start()
		if !ok {
			return
		}
		<-exited
		s.mu.Lock()
		name, shot, last := s.name, s.shot, s.last
		clean := s.cmd.ProcessState.Success()
		s.mu.Unlock()
		if last && !shot || clean && s.cfg.Role == "producer" {
			return
		}
		if clean {
			continue // it was told to end
		}
		class := "kill"
		if !shot {
			class = "exit"
			s.r.count(class)
		}
		s.r.out.Write(Event{Type: OK, Op: Fault, Class: class, Ref: name})
		if last {
			return // its grace was over
		}
		if s.cfg.Role == "producer" {
			s.cfg.Jobs = s.r.opts.Jobs - s.r.enqueued()
			s.cfg.Seed += 1000 // other jobs than those before
		}
	}
}

func (s *slot) start() (exited <-chan struct{}, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last || s.cfg.Role == "producer" && s.cfg.Jobs <= 0 {
		return nil, false
	}
	s.count++
	s.shot = false
	s.name = fmt.Sprintf("%s.%d", s.base, s.count)
	s.cfg.Name = s.name
	words, err := json.Marshal(s.cfg)
	if err != nil {
		panic(err)
	}
	s.cmd = exec.Command(s.r.opts.Binary)
	s.cmd.Env = append(os.Environ(), ChildEnv+"="+string(words),
		"GORACE=atexit_sleep_ms=10") // it is a second otherwise
	stderr, err := os.Create(filepath.Join(s.cfg.Dir, s.name+".stderr"))
	if err == nil {
		defer func() { _ = stderr.Close() }()
		s.cmd.Stderr = stderr
		_, err = s.cmd.StdinPipe() // closes when this process ends
	}
	if err == nil {
		exited, err = redistest.StartTied(s.cmd)
	}
	if err != nil {
		s.r.fail("start %s: %v", s.name, err)
		return nil, false
	}
	return exited, true
}

// signal reaches the process of now, and says which that was.
func (s *slot) signal(sig syscall.Signal) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process == nil {
		return ""
	}
	if sig == syscall.SIGKILL {
		s.shot = true
	}
	_ = s.cmd.Process.Signal(sig) // one that has ended needs none
	return s.name
}

// stop ends it for good: by SIGTERM, if that takes no longer than the grace.
func (s *slot) stop(grace time.Duration) {
	s.mu.Lock()
	s.last = true
	s.mu.Unlock()
	s.signal(syscall.SIGCONT)
	s.signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.signal(syscall.SIGKILL)
		<-s.done
	}
}

// noise is what children wrote to their standard error: panics and data races.
func noise(dir string) (texts []string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.stderr")) // the pattern is good
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			name := strings.TrimSuffix(filepath.Base(path), ".stderr")
			texts = append(texts, fmt.Sprintf("%s: %.4000s", name, text))
		}
	}
	return texts
}
