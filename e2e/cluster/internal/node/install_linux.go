package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

func canInstall() bool {
	_, debian := os.Stat("/etc/debian_version")
	_, apt := exec.LookPath("apt-get")
	return debian == nil && apt == nil
}

// installScript installs the packages in its arguments after the first, and removes or upgrades none. If systemd runs, the first argument is
// "systemd". Then the script hides systemd's directory, so that the packages' scripts start no service, and does not enable a newly installed
// containerd.
const installScript = `set -e
export DEBIAN_FRONTEND=noninteractive
services=$1
shift
apt-get update --quiet || echo "going on with the package lists there are"
if [ "$services" = systemd ]; then mount -t tmpfs none /run/systemd; fi
apt-get install --yes --quiet --no-install-recommends --no-upgrade --no-remove -o DPkg::Lock::Timeout=120 "$@"
case " $* " in *" containerd "*)
  if [ "$services" = systemd ]; then systemctl disable containerd.service || true; fi ;;
esac
`

// Install returns the programs of a node after installing the missing ones with Debian's package manager.
func Install(ctx context.Context, log io.Writer) (Tools, error) {
	tools, err := FindTools()
	var missing *MissingError
	if !errors.As(err, &missing) || !canInstall() {
		return tools, err
	}
	services := "none"
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		services = "systemd"
	}
	// Use a separate mount namespace, so that only the script sees the mount that hides systemd.
	args := []string{"--mount", "--propagation", "private", "sh", "-c", installScript, "install", services}
	command := exec.CommandContext(ctx, "unshare", append(args, missing.Packages...)...)
	command.Stdout, command.Stderr = log, log
	// Send SIGTERM instead of SIGKILL, so that the package manager can finish its step.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Run(); err != nil {
		return tools, fmt.Errorf("installing %s (see logs/install.log): %w", strings.Join(missing.Packages, ", "), err)
	}
	return FindTools()
}
