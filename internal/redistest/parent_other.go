//go:build !linux

package redistest

import "os/exec"

// dieWithParent does nothing: only Linux has a signal for a parent's death. A
// test binary that is killed leaves its servers running here.
func dieWithParent(*exec.Cmd) {}
