package policy

import (
	"fmt"

	"github.com/kubeop/kubeop/delivery/denial"
)

// Ungranted adds to the refusal of a Role or binding who can allow it, and how. It returns any other error unchanged.
func Ungranted(err error) error {
	if !denial.Escalation(err) {
		return err
	}
	return fmt.Errorf("%w; an app's role can grant only what kubeop-deployer has: take these rules out, or ask an administrator of the cluster to allow them "+
		"to the apps of all tenants, with a ClusterRole that has these rules and the label paas.kubeop.io/aggregate-to-deployer: \"true\", "+
		"or to deliver this app from platform/ of the platform repository", err)
}
