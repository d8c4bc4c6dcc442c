package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

// nodeKind returns the kind of node and why it was chosen. Only "auto" falls back to a simulated node.
func nodeKind(wanted string) (kind layout.NodeKind, why string, err error) {
	switch wanted {
	case string(layout.None):
		return layout.None, "control plane only", nil
	case string(layout.Simulated):
		return layout.Simulated, "as requested", nil
	case string(layout.Real):
		if err := node.Possible(); err != nil {
			return "", "", fmt.Errorf("no real node here: %w", err)
		}
		return layout.Real, "as requested", nil
	case "auto", "":
		if err := node.Possible(); err != nil {
			return layout.Simulated, err.Error(), nil
		}
		return layout.Real, "containerd and runc run the pods", nil
	}
	return "", "", fmt.Errorf("--node %s: it is real, simulated, none or auto", wanted)
}

// newNode returns the command of a real node's init. The supervisor starts it in its own namespaces; it is not for users.
func newNode(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "node", Short: "Be the init of a real node", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			return node.Init(dir, os.Stdin)
		},
	}
}
