package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

// group writes the files of a cgroup into a folder.
func group(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		at := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestMissingProtectionIsReported: missing protections of the system and limits that contradict each other are reported, with what is then
// not protected.
func TestMissingProtectionIsReported(t *testing.T) {
	all := []string{namespaces, withLock, withFilter}
	roomy := map[string]string{"cgroup.controllers": "memory", "memory.max": "1073741824", "memory.oom.group": "0"}
	usual := Options{Processes: 2, Limits: Limits{CPU: time.Second, Wall: 30 * time.Second}}
	const v1 = "cgroup v2 (version 1 is there: the kernel's own memory for the processes may not count to the container's limit)"
	const unlimited = "a limit of the container's memory (the processes and the operator may take the node's)"
	for name, test := range map[string]struct {
		active []string
		cgroup map[string]string
		opts   Options
		want   []string
	}{
		"nothing": {active: all, cgroup: roomy, opts: usual},
		"no confinement": {cgroup: roomy, opts: usual, want: []string{
			"namespaces (a process shares the operator's network namespace)",
			"landlock (what reads files or connects is held by seccomp, if that is there)", "seccomp (system calls are not filtered)",
			"neither of the two (a process can read the operator's files and connect to whatever the operator can)",
		}},
		"no landlock": {active: []string{namespaces, withFilter}, cgroup: roomy, opts: usual, want: []string{"landlock (what reads files or connects is held by seccomp, if that is there)"}},
		"no cgroup":   {active: all, opts: usual, want: []string{"cgroup v2 (what limits this container's memory is not known, and is not compared with what the processes take)"}},
		"cgroup v1": {active: all, cgroup: map[string]string{"memory/memory.limit_in_bytes": "1073741824"}, opts: usual,
			want: []string{v1}},
		"cgroup v1 without a limit": {active: all, cgroup: map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712"}, opts: usual,
			want: []string{v1, unlimited}},
		"cgroup v2 without a limit": {active: all, cgroup: map[string]string{"cgroup.controllers": "memory", "memory.max": "max"}, opts: usual,
			want: []string{unlimited}},
		"a node's own cgroup": {active: all, cgroup: map[string]string{"cgroup.controllers": "memory"}, opts: usual,
			want: []string{unlimited}},
		"all end together": {active: all, cgroup: map[string]string{"memory.max": "1073741824", "memory.oom.group": "1"}, opts: usual,
			want: []string{"an end of single processes when memory is short (the container has memory.oom.group: the kernel ends the operator with them; the kubelet's singleProcessOOMKill changes that)"}},
		"too little memory": {active: all, cgroup: map[string]string{"memory.max": "536870912", "memory.oom.group": "0"}, opts: usual,
			want: []string{"the container's limit of memory, 512 MiB, is less than 2 processes of 256 MiB and the operator take: what is evaluated can end the operator"}},
		"times that contradict each other": {active: all, cgroup: roomy,
			opts: Options{Processes: 2, Limits: Limits{Memory: 64 << 20, CPU: 30 * time.Second * time.Duration(runtime.GOMAXPROCS(0)), Wall: 30 * time.Second}},
			want: []string{fmt.Sprintf("2 processes have %d processors between them: what takes less than the limit of processor time, %s, "+
				"can be over the limit of time, 30s, because of what others evaluate", runtime.GOMAXPROCS(0), 30*time.Second*time.Duration(runtime.GOMAXPROCS(0)))}},
		"one process": {active: all, cgroup: roomy, opts: Options{Processes: 1, Limits: usual.Limits}, want: []string{"there is one process: while it evaluates what takes long, all tenants wait"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(test.opts)
			p.cgroup = group(t, test.cgroup)
			if diff := cmp.Diff(test.want, p.missing(test.active)); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLineNamesWhatIsMissing: the log line at the start lists all missing protections.
func TestTheLineNamesWhatIsMissing(t *testing.T) {
	var lines []string
	p := New(Options{Processes: 2, Log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})})
	p.cgroup = group(t, map[string]string{"memory.max": "536870912", "memory.oom.group": "1"})
	p.mu.Lock()
	p.report([]string{withFilter})
	p.mu.Unlock()
	if len(lines) != 1 {
		t.Fatalf("it logged %q", lines)
	}
	for _, want := range []string{
		`"level"=0 "msg"="Evaluating what tenants wrote in processes of their own" "processes"=2 "memory"="256 MiB" "cpu"="10s" "wall"="30s" "output"=`,
		`"confinedBy"="rlimits, seccomp"`, "namespaces (", "landlock (", "memory.oom.group", "512 MiB"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("the line has no %q: %s", want, lines[0])
		}
	}
}
