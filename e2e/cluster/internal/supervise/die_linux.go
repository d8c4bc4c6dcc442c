package supervise

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the process when its parent ends, even if the parent is killed.
func dieWithParent(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// WaitForEnd waits until the process with the PID has ended. A zombie has ended.
func WaitForEnd(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	for ctx.Err() == nil {
		// The descriptor becomes readable when the process ends. The timeout limits the delay until a cancellation is noticed.
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 500)
		if n > 0 || (err != nil && err != unix.EINTR) {
			return nil
		}
	}
	return ctx.Err()
}
