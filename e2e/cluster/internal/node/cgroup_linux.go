package node

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// system is the cgroup of the node's own programs, next to that of its pods. In cgroup v2 only leaves may contain processes.
const system = "system"

// hierarchies returns the mount points of cgroups: one for version 2, one per controller for version 1.
func hierarchies() ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing control group hierarchies: %w", err)
	}
	defer file.Close()
	var mounts []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// Fields after the dash: file system type, source, options. Field 5 is the mount point, field 4 the root.
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if strings.HasPrefix(after, "cgroup") && len(fields) > 4 && fields[3] == "/" {
			mounts = append(mounts, fields[4])
		}
	}
	if len(mounts) == 0 {
		return nil, errors.New("a real node needs control groups, and none are mounted")
	}
	return mounts, nil
}

// checkCgroups returns an error if this process cannot create cgroups.
func checkCgroups() error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	probe := filepath.Join(mounts[0], fmt.Sprintf("kubeop-probe-%d", os.Getpid()))
	if err := os.Mkdir(probe, 0o755); err != nil {
		return fmt.Errorf("a real node needs writable control groups: %w", err)
	}
	return os.Remove(probe)
}

// Enclose creates the node's cgroups and moves its init into them. Processes that init starts are in them too.
func (n Node) Enclose(pid int) error {
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		dir := filepath.Join(mount, Cgroup(n.Cluster))
		for _, path := range []string{dir, filepath.Join(dir, system)} {
			if err := makeGroup(path); err != nil {
				return err
			}
		}
		procs := filepath.Join(dir, system, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("putting the node into its control group: %w", err)
		}
	}
	return nil
}

// makeGroup creates one cgroup. A new cpuset of version 1 accepts no process until its processors and memory nodes are set. In version 2 the
// parent must enable the controllers.
func makeGroup(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a control group: %w", err)
	}
	parent := filepath.Dir(path)
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil || len(strings.TrimSpace(string(value))) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, name), value, 0); err != nil && isVersion1(path) {
			return fmt.Errorf("setting %s of a control group: %w", name, err)
		}
	}
	for _, controller := range []string{"+cpu", "+cpuset", "+memory", "+pids", "+io", "+hugetlb"} {
		// Not every kernel has every controller. The kubelet reports which one it misses.
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte(controller), 0)
	}
	return nil
}

func isVersion1(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.CGROUP_SUPER_MAGIC
}

// removeGroups kills the processes in the node's cgroups and removes the cgroups.
func removeGroups(cgroup string) error {
	if len(cgroup) < 2 { // never the root
		return nil
	}
	mounts, err := hierarchies()
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		dir := filepath.Join(mount, cgroup)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			err := removeTree(dir)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing the control group %s: %w", dir, err)
			}
		}
	}
	return nil
}

// removeTree removes a cgroup and those below it, deepest first. Their files vanish with them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	killAll(filepath.Join(dir, "cgroup.procs"))
	return unix.Rmdir(dir)
}

func killAll(procs string) {
	data, _ := os.ReadFile(procs)
	for line := range strings.Lines(string(data)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
