package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Programs returns the host's PIDs of the node's own programs by name, without pods and their shims.
func Programs(state layout.Node) map[string]int {
	found := map[string]int{}
	if state.Kind != layout.Real {
		return found
	}
	mounts, err := hierarchies()
	if err != nil {
		return found
	}
	data, _ := os.ReadFile(filepath.Join(mounts[0], state.Cgroup, system, "cgroup.procs"))
	for line := range strings.Lines(string(data)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			continue
		}
		for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
			if runs(pid, name) {
				found[name] = pid
			}
		}
	}
	return found
}

// runs reports whether a process is the program, by its command line: the program's name, or this binary with that name.
func runs(pid int, name string) bool {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	args := strings.Split(string(data), "\x00")
	return filepath.Base(args[0]) == name || (len(args) > 1 && args[1] == name)
}
