package cli

import (
	"bufio"
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/boot"
)

// progressFD is the file descriptor on which `up` reads the supervisor's progress.
const progressFD = 3

// newSupervise returns the command of the process that `up` leaves running. It is not for users.
func newSupervise(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Short: "Keep a cluster's processes running", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			// `up` first writes cluster.json with this process's PID. From then on only this process writes it.
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return fmt.Errorf("waiting for \"up\": %w", err)
			}
			// The components must not keep the pipe open, because `up` reads it to its end.
			syscall.CloseOnExec(progressFD)
			return boot.Run(dir, os.NewFile(progressFD, "progress"))
		},
	}
}
