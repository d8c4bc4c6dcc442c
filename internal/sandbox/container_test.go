package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"
)

// contained is the argument that makes the test binary an operator in a container. It tries to reach the address that follows.
const contained = "contained"

// refusedInContainers are system calls that the default seccomp profile of containers refuses without capabilities. It also refuses clone
// with a new namespace.
var refusedInContainers = []string{
	"unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "ptrace", "bpf", "perf_event_open", "keyctl", "add_key", "request_key",
	"userfaultfd", "kexec_load", "init_module", "finit_module", "delete_module", "reboot", "swapon", "swapoff", "open_by_handle_at",
	"process_vm_readv", "process_vm_writev", "clone3",
}

// contain gives this process the restrictions of the chart's container: no new privileges, no new namespaces, no file that can be written.
func contain() error {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{}); err != nil { // as on a read-only root
		return err
	}
	const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range refusedInContainers {
		if _, ok := info.SyscallNames[name]; ok {
			names = append(names, name)
		}
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{{
			Action: seccomp.ActionErrno, Names: names,
			NamesWithCondtions: []seccomp.NameWithConditions{{
				Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: newNamespaces}},
			}},
		}}},
	})
}

// workContained uses a pool in a container and prints the results.
func workContained(address string) {
	err := contain()
	p := New(Options{Limits: small, Log: funcr.New(func(_, args string) { fmt.Println("LOG", args) }, funcr.Options{})})
	if err == nil {
		err = p.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil))
		fmt.Println("READY BEFORE", err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		out, failed := p.Call(ctx, Call{Function: "reach", Input: [][]byte{[]byte(address)}})
		fmt.Printf("REACHED %q\n", out)
		_, over := p.Call(ctx, Call{Function: "memory"})
		_, slow := p.Call(ctx, Call{Function: "loop"})
		fmt.Println("LIMITS", over, "and", slow)
		status, unread := os.ReadFile(fmt.Sprintf("/proc/%d/status", processOf(p)))
		fmt.Printf("UID %d STATUS %q\n", os.Getuid(), status)
		fmt.Println("READY", p.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil)))
		cancel()
		err = errors.Join(failed, unread, <-ended)
	}
	if err != nil {
		fmt.Println("FAILED", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// processOf returns the ID of a process of the pool. It waits until there is one.
func processOf(p *Pool) int {
	for {
		p.mu.Lock()
		for b := range p.all {
			defer p.mu.Unlock()
			return b.cmd.Process.Pid
		}
		p.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// TestAllLimitsHoldInAContainer: in a container as the chart runs it (not as root, and without new privileges, namespaces or writable files) all limits
// hold, the processes reach nothing, and the log line at the start lists what is missing.
func TestAllLimitsHoldInAContainer(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector's runtime starts threads that a confined process may not start")
	}
	cmd := exec.Command("/proc/self/exe", contained, "127.0.0.1:1")
	// It ends with this process, also when that is killed. Linux counts the end of the thread that started it, so the thread stays.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
	}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := string(text)
	for _, want := range []string{
		"READY BEFORE no process that evaluates was started yet", "READY <nil>", `REACHED ""`,
		"LIMITS values.yaml takes more than the limit of memory, 192 MiB and it takes more than the limit of processor time, 300ms",
		`"confinedBy"="rlimits, `, "seccomp", "namespaces (a process shares the operator's network namespace)",
		`NoNewPrivs:\t1`, `Seccomp:\t2`, `CapEff:\t0000000000000000`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output does not contain %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, `"confinedBy"="rlimits, namespaces`) || strings.Contains(out, "UID 0") {
		t.Errorf("it has namespaces, or is root: this is no container\n%s", out)
	}
}

// TestTheLogSaysWhenNamespacesBeginToFail: when the system begins to refuse namespaces, the log line is written again.
func TestTheLogSaysWhenNamespacesBeginToFail(t *testing.T) {
	var lines []string
	p := New(Options{Processes: 1, Log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})})
	t.Cleanup(p.Close)
	p.mu.Lock()
	p.report([]string{namespaces, withLock, withFilter})
	p.report([]string{namespaces, withLock, withFilter})
	p.report([]string{withLock, withFilter})
	p.mu.Unlock()
	if len(lines) != 2 || !strings.Contains(lines[1], "namespaces (a process shares") || strings.Contains(lines[0], "namespaces (a process") {
		t.Errorf("it logged %q", lines)
	}
}

// TestNoProcessCanBeStarted: calls and the readiness check return the error until a process can be started.
func TestNoProcessCanBeStarted(t *testing.T) {
	p := New(Options{Processes: 1, Program: []string{"/nowhere"}})
	t.Cleanup(p.Close)
	if _, err := p.Call(t.Context(), Call{Function: "echo"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := p.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ready: %v", err)
	}
	p.opts.Program = []string{"/proc/self/exe", Command}
	if err := p.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil)); err != nil {
		t.Errorf("it can be started again: %v", err)
	}
	if err := p.Ready(httptest.NewRequest(http.MethodGet, "/readyz", nil)); err != nil {
		t.Error(err)
	}
}
