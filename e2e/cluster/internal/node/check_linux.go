package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give the node's init namespaces of its own. There is no user namespace: root on the node is root on the
// host.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
}

// packages are the Debian packages with the programs of a node.
var packages = []string{"containerd", "runc", "containernetworking-plugins", "nftables"}

// cniDirs are where distributions put CNI plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Possible returns nil when this process can make a real node here, installing programs if need be, else why not.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("a real node needs root")
	}
	if err := checkCapabilities(); err != nil {
		return err
	}
	if err := checkCgroups(); err != nil {
		return err
	}
	if _, err := FindTools(); err != nil && !canInstall() {
		return fmt.Errorf("%w, and this is no Debian to install it on", err)
	}
	return nil
}

// FindTools returns the programs of a node, or an error naming the missing ones.
func FindTools() (Tools, error) {
	var tools Tools
	var missing []string
	for name, path := range map[string]*string{
		"containerd": &tools.Containerd, "ctr": &tools.Ctr, "runc": nil, "containerd-shim-runc-v2": nil, "nft": nil,
	} {
		found, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		if path != nil {
			*path = found
		}
	}
	for _, dir := range cniDirs {
		if hasPlugins(dir) {
			tools.CNI = dir
			break
		}
	}
	if tools.CNI == "" {
		missing = append(missing, "the CNI plugins")
	}
	if len(missing) > 0 {
		return tools, fmt.Errorf("a real node needs %s", strings.Join(missing, ", "))
	}
	return tools, nil
}

func hasPlugins(dir string) bool {
	for _, plugin := range []string{"ptp", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
			return false
		}
	}
	return true
}

// checkCapabilities tells root in an unprivileged container, which can make no namespaces, from real root.
func checkCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("a real node needs root's capabilities: %w", err)
	}
	for name, bit := range map[string]uint{"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN} {
		if data[0].Effective&(1<<bit) == 0 {
			return fmt.Errorf("a real node needs %s, which this container's root has not", name)
		}
	}
	return nil
}

// onOverlay reports whether a path is on an overlay file system, as everything in a container usually is.
func onOverlay(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC
}
