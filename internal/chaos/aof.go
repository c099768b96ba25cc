package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"time"
)

var (
	multi   = []byte("*1\r\n$5\r\nMULTI\r\n")
	execute = []byte("*1\r\n$4\r\nEXEC\r\n")
)

// cutOpenTransaction does what redis-check-aof --fix would do before a server that
// was killed starts again. redis-server (seen on 7.0.15) itself cuts an append-only
// file that ends in the middle of a command after the command before, even within a
// MULTI. That then stays open, and at the start after the next one what is left of it
// is run, with the transaction that follows: half a script, of which Redis had
// forgotten all.
func cutOpenTransaction(dir string) (cut bool, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(paths) == 0 {
		return false, err
	}
	path := slices.MaxFunc(paths, func(a, b string) int { return modified(a).Compare(modified(b)) })
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	// A payload could hold these bytes as well. The tasks of a run do not.
	begun := bytes.LastIndex(text, multi)
	if begun < 0 || bytes.LastIndex(text, execute) > begun {
		return false, nil
	}
	return true, os.Truncate(path, int64(begun))
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
