package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

func canInstall() bool {
	_, debian := os.Stat("/etc/debian_version")
	_, apt := exec.LookPath("apt-get")
	return debian == nil && apt == nil
}

// installScript installs packages without touching what is there. $1 is whether a systemd is running: then its
// directory is hidden from the packages' scripts, for them to start no service, and the new service is not enabled
// either. A containerd that was installed before is never in this list, so its service is left as it is.
const installScript = `set -e
export DEBIAN_FRONTEND=noninteractive
wanted="$2"
new=""
for package in $wanted; do
  dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || new="$new $package"
done
apt-get update --quiet || echo "going on with the package lists there are"
if [ "$1" = systemd ]; then mount -t tmpfs none /run/systemd; fi
apt-get install --yes --quiet --no-install-recommends --no-upgrade -o DPkg::Lock::Timeout=120 $new
case " $new " in *" containerd "*)
  if [ "$1" = systemd ]; then systemctl disable containerd.service || true; fi ;;
esac
`

// Install returns the programs of a node after installing the missing ones with Debian's package manager.
func Install(ctx context.Context, log io.Writer) (Tools, error) {
	tools, err := FindTools()
	if err == nil {
		return tools, nil
	}
	if !canInstall() {
		return tools, err
	}
	services := "none"
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		services = "systemd"
	}
	// The mount that hides systemd must not be seen by anybody else.
	command := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private",
		"sh", "-c", installScript, "install", services, strings.Join(packages, " "))
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGTERM}
	if err := command.Run(); err != nil {
		return tools, fmt.Errorf("installing %s: %w", strings.Join(packages, ", "), err)
	}
	return FindTools()
}
