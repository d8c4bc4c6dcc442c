package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The optional parts of the confinement; without lists what is unprotected if one is missing. Limits of memory, files and core dumps are
// mandatory: a process that cannot set them does not start.
const (
	namespaces = "namespaces"
	withLock   = "landlock"
	withFilter = "seccomp"
)

var without = map[string]string{
	namespaces: "a process shares the operator's network namespace",
	withLock:   "what reads files or connects is held by seccomp, if that is there",
	withFilter: "system calls are not filtered",
}

// confine permanently removes from this process the rights that no evaluation needs. It returns which optional parts are active.
func confine(memory int64) (active []string, err error) {
	// If the container's memory is used up, the kernel should kill this process before the operator. Not every system has the file.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	data, err := dataBytes()
	if err != nil {
		return nil, err
	}
	limits := []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_DATA, data + uint64(memory)}, // Serve checked that it is positive
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_NOFILE, 16}, {unix.RLIMIT_MEMLOCK, 0},
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return nil, fmt.Errorf("limit %d: %w", l.resource, err)
		}
	}
	if err := lock(); err == nil {
		active = append(active, withLock)
	}
	if err := filter(); err == nil {
		active = append(active, withFilter)
	}
	return active, nil
}

// dataBytes returns the process's writable memory at the start in bytes, because RLIMIT_DATA includes it.
func dataBytes() (uint64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("reading how large the process is: %w", err)
	}
	const data = 5
	fields := bytes.Fields(text)
	if len(fields) <= data {
		return 0, fmt.Errorf("/proc/self/statm is %q", text)
	}
	pages, err := strconv.ParseUint(string(fields[data]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/self/statm is %q: %w", text, err)
	}
	return pages * uint64(os.Getpagesize()), nil // the page size is positive
}

// lock removes access to all files and to the network.
func lock() error {
	if _, err := llsyscall.LandlockGetABIVersion(); err != nil {
		return err
	}
	return landlock.V5.BestEffort().Restrict()
}

// allowed are the system calls that Go's runtime and a pipe need. Some exist on one architecture only.
var allowed = []string{
	"brk", "clock_gettime", "clock_nanosleep", "clone", "clone3", "close", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait",
	"eventfd2", "exit", "exit_group", "fcntl", "fstat", "futex", "getpid", "getrandom", "getrlimit", "gettid", "gettimeofday",
	"getrusage", "madvise", "membarrier", "mincore", "mmap", "mprotect", "mremap", "munmap", "nanosleep", "pipe2", "ppoll", "poll", "prlimit64",
	"pselect6", "read", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity",
	"sched_yield", "set_robust_list", "setitimer", "sigaltstack", "tgkill", "timer_create", "timer_delete", "timer_settime", "uname",
	"write", "writev", "readv",
}

// filter refuses all other system calls with EPERM. clone is needed for threads, so a fork is possible too, but it can execute no program and
// has the same limits.
func filter() error {
	if !seccomp.Supported() {
		return errors.New("the kernel has no seccomp filters")
	}
	runtime.LockOSThread() // no_new_privs is set on this thread. The other threads get it with the filter.
	defer runtime.UnlockOSThread()
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(slices.Clone(allowed), func(name string) bool { _, ok := info.SyscallNames[name]; return !ok })
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionAllow, Names: known}},
		},
	})
}
