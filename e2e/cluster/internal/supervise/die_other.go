//go:build !linux

package supervise

import (
	"context"
	"syscall"
	"time"
)

// dieWithParent can do nothing here: other systems do not tie a process to its parent.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// WaitForEnd returns when the process with the given number has ended.
func WaitForEnd(ctx context.Context, pid int) error {
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
			if syscall.Kill(pid, 0) == syscall.ESRCH {
				return nil
			}
		}
	}
}
