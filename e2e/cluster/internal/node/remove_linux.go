package node

import (
	"errors"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

// Remove takes away what a node may have left when its init was not there to be killed: processes in its control
// groups, the groups, and the link with its routes.
func Remove(state layout.Node) error {
	if state.Kind != layout.Real || state.Link == "" {
		return nil
	}
	return errors.Join(removeGroups(state.Cgroup), removeLink(state.Link))
}
