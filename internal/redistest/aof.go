package redistest

import (
	"os"
	"path/filepath"
)

// AOFSize is the length of the file that grows with each write of a server with
// "--appendonly yes". With "--appendfsync always", and with everysec while no sync
// is under way, what was answered lies below it.
func (s *Server) AOFSize() int64 {
	s.t.Helper()
	info, err := os.Stat(s.aof())
	if err != nil {
		s.t.Fatalf("redistest: aof: %v", err)
	}
	return info.Size()
}

// AOF is what is in that file.
func (s *Server) AOF() []byte {
	s.t.Helper()
	text, err := os.ReadFile(s.aof())
	if err != nil {
		s.t.Fatalf("redistest: aof: %v", err)
	}
	return text
}

// RestartWith kills the server and starts it with another text in that file: with
// the first part of the old one it is as after a loss of power.
func (s *Server) RestartWith(aof []byte) {
	s.t.Helper()
	s.Kill()
	if err := os.WriteFile(s.aof(), aof, 0o600); err != nil {
		s.t.Fatalf("redistest: aof: %v", err)
	}
	s.Restart()
}

// aof is a folder since Redis 7, and a file before.
func (s *Server) aof() string {
	parts, _ := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if len(parts) > 0 {
		return parts[len(parts)-1]
	}
	return filepath.Join(s.dir, "appendonly.aof")
}
