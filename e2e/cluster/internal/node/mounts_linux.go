package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tunables are kernel settings that the kubelet requires. They belong to the whole machine, so the node does not change them. It mounts files
// with the required values over them.
var tunables = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mount sets up the node's view of the file system in its own mount namespace.
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
	// Volumes with mount propagation need shared mounts. They are shared only within this namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing the node's mounts: %w", err)
	}
	return nil
}

// mountRun mounts a new file system over /run, with the cluster directory and the binary in it. It sets the file system up elsewhere and moves
// it, because both may be below a directory that it hides.
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

// cover mounts a file with the value over a kernel setting.
func cover(name, value string) error {
	setting := filepath.Join("/proc/sys", name)
	if _, err := os.Stat(setting); err != nil {
		return nil // this kernel does not have the setting; the kubelet reports it if it needs it
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
