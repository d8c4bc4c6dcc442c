package policy

import (
	"fmt"
	"strings"
)

// notHeld is what the API server says of a Role that grants more than the account that writes it has. Only the message says so.
const notHeld = "attempting to grant RBAC permissions not currently held"

// Ungranted adds to the refusal of a Role or a binding who may allow it, and how. It returns any other error as it is.
func Ungranted(err error) error {
	if err == nil || !strings.Contains(err.Error(), notHeld) {
		return err
	}
	return fmt.Errorf("%w; an app's role can grant only what kubeop-deployer has: take these rules out, or ask an administrator of the cluster to allow them "+
		"to the apps of all tenants, with a ClusterRole that has these rules and the label paas.kubeop.io/aggregate-to-deployer: \"true\"", err)
}
