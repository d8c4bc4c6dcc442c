package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tunables are the kernel settings that the kubelet insists on. They belong to the whole machine, so the node shows the
// kubelet files with the wanted values in their place, and the machine's stay what they are.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mount gives the node its own view of the file system, within its own mount namespace.
func (n Node) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separating the node's mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := n.mountRun(); err != nil {
		return err
	}
	for source, target := range map[string]string{"node/var-lib": "/var/lib", "node/var-log": "/var/log"} {
		if err := bind(filepath.Join(insideDir, source), target); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777"); err != nil {
		return fmt.Errorf("mounting /tmp: %w", err)
	}
	for name, value := range tunables {
		if err := cover(name, value); err != nil {
			return err
		}
	}
	// Volumes with mount propagation need shared mounts; they are shared within this namespace only.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the node's mounts: %w", err)
	}
	return nil
}

// mountRun covers /run with a fresh file system that shows the cluster directory and the binary. Both may themselves
// lie below a directory that is about to be covered, so it is made elsewhere and moved into place.
func (n Node) mountRun() error {
	stage := n.Dir.Path("node", "run")
	if err := unix.Mount("tmpfs", stage, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	for _, dir := range []string{"cluster", "bin", "sysctl", "lock"} {
		if err := os.Mkdir(filepath.Join(stage, dir), 0o755); err != nil {
			return fmt.Errorf("filling /run: %w", err)
		}
	}
	binary := filepath.Join(stage, "bin", "cluster")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		return fmt.Errorf("filling /run: %w", err)
	}
	if err := bind(n.Binary, binary); err != nil {
		return err
	}
	if err := bind(string(n.Dir), filepath.Join(stage, "cluster")); err != nil {
		return err
	}
	if err := unix.Mount(stage, "/run", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("covering /run: %w", err)
	}
	return nil
}

// cover puts a file with the value in the place of a kernel setting.
func cover(name, value string) error {
	setting := filepath.Join("/proc/sys", name)
	if _, err := os.Stat(setting); err != nil {
		return nil // this kernel has no such setting, and the kubelet will say so if it minds
	}
	file := filepath.Join("/run/sysctl", filepath.Base(name))
	if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
		return fmt.Errorf("covering %s: %w", setting, err)
	}
	return bind(file, setting)
}

func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("showing %s at %s: %w", source, target, err)
	}
	return nil
}
