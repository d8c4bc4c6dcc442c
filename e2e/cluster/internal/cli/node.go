package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/node"
)

// nodeKind decides what runs pods and says why. Only "auto" ever settles for less than was asked for.
func nodeKind(asked string) (kind layout.NodeKind, why string, err error) {
	switch asked {
	case string(layout.None):
		return layout.None, "control plane only", nil
	case string(layout.Simulated):
		return layout.Simulated, "as asked", nil
	case string(layout.Real):
		if err := node.Possible(); err != nil {
			return "", "", fmt.Errorf("no real node here: %w", err)
		}
		return layout.Real, "as asked", nil
	case "auto", "":
		if err := node.Possible(); err != nil {
			return layout.Simulated, err.Error(), nil
		}
		return layout.Real, "containerd and runc run the pods", nil
	}
	return "", "", fmt.Errorf("--node %s: it is real, simulated, none or auto", asked)
}

// newNode is the init of a real node, started by the supervisor in namespaces of its own; it is not meant to be called
// by hand.
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
