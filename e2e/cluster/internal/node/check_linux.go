package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give the node's init its own namespaces, except for a user namespace: root on the node is root on the host.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
}

// programs are the programs that a node needs from the host, and the Debian package of each.
var programs = []struct{ name, debian string }{
	{"containerd", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"ctr", "containerd"},
	{"runc", "runc"}, {"nft", "nftables"},
}

// cniDirs are the directories in which distributions install CNI plugins.
var cniDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}

// Possible returns nil if this process can create a real node here, if necessary after installing programs. Otherwise it returns why not.
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

// MissingError lists the programs of a node that the host does not have.
type MissingError struct {
	// Programs are their names, Packages the Debian packages to install.
	Programs, Packages []string
}

func (e *MissingError) Error() string { return "a real node needs " + strings.Join(e.Programs, ", ") }

// FindTools returns the paths of the programs of a node, or a MissingError.
func FindTools() (Tools, error) {
	missing := &MissingError{}
	found := map[string]string{}
	for _, program := range programs {
		path, err := exec.LookPath(program.name)
		if err != nil {
			missing.add(program.name, program.debian)
		}
		found[program.name] = path
	}
	tools := Tools{Containerd: found["containerd"], Ctr: found["ctr"]}
	if i := slices.IndexFunc(cniDirs, hasPlugins); i >= 0 {
		tools.CNI = cniDirs[i]
	} else {
		missing.add("the CNI plugins", "containernetworking-plugins")
	}
	if len(missing.Programs) > 0 {
		return tools, missing
	}
	return tools, nil
}

func (e *MissingError) add(program, debian string) {
	e.Programs = append(e.Programs, program)
	if !slices.Contains(e.Packages, debian) {
		e.Packages = append(e.Packages, debian)
	}
}

func hasPlugins(dir string) bool {
	for _, plugin := range []string{"ptp", "host-local", "loopback"} {
		if _, err := os.Stat(filepath.Join(dir, plugin)); err != nil {
			return false
		}
	}
	return true
}

// checkCapabilities returns an error for root in an unprivileged container, which cannot create namespaces.
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

// onOverlay reports whether a path is on an overlay file system, as is usual in a container.
func onOverlay(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC
}
