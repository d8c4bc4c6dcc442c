//go:build !linux

package supervise

import (
	"context"
	"syscall"
	"time"
)

// dieWithParent does nothing here, because other systems cannot kill a process when its parent ends.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// WaitForEnd waits until the process with the PID has ended.
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
