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

// installScript installs the packages named after its first argument and removes or upgrades none. The first argument
// is "systemd" where one runs: then its directory is hidden, so that the packages' scripts start no service, and a
// containerd that comes in by this is not enabled either.
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
	// A mount namespace of its own: the mount that hides systemd must not be seen by anybody else.
	args := []string{"--mount", "--propagation", "private", "sh", "-c", installScript, "install", services}
	command := exec.CommandContext(ctx, "unshare", append(args, missing.Packages...)...)
	command.Stdout, command.Stderr = log, log
	// An interrupted package manager must be able to finish its step, so it is asked, not killed.
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Run(); err != nil {
		return tools, fmt.Errorf("installing %s (see logs/install.log): %w", strings.Join(missing.Packages, ", "), err)
	}
	return FindTools()
}
