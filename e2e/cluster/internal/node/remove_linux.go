package node

import (
	"errors"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Remove removes what a node may have left if its init was not killed: the processes in its cgroups, the cgroups, and the link with its routes.
func Remove(state layout.Node) error {
	if state.Kind != layout.Real || state.Link == "" {
		return nil
	}
	return errors.Join(removeGroups(state.Cgroup), removeLink(state.Link))
}
