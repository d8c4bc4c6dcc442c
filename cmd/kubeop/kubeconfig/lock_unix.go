//go:build darwin || linux

package kubeconfig

import (
	"errors"
	"os"
	"syscall"
)

// isLocked locks a file, unless another process has it locked, and reports whether one has.
func isLocked(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
