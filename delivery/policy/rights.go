package policy

import (
	"fmt"
	"strings"
)

// notHeld is the API server's message about a Role that grants more rights than the account that writes it has. It is compared as text,
// because there is no type: the API server answers Forbidden without a cause, as for any missing right, and of an error in a Helm release only
// the masked text is left.
const notHeld = "attempting to grant RBAC permissions not currently held"

// Ungranted adds to the refusal of a Role or binding who can allow it, and how. It returns any other error unchanged.
func Ungranted(err error) error {
	if err == nil || !strings.Contains(err.Error(), notHeld) {
		return err
	}
	return fmt.Errorf("%w; an app's role can grant only what kubeop-deployer has: take these rules out, or ask an administrator of the cluster to allow them "+
		"to the apps of all tenants, with a ClusterRole that has these rules and the label paas.kubeop.io/aggregate-to-deployer: \"true\", "+
		"or to deliver this app from platform/ of the platform repository", err)
}
