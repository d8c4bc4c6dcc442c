package check

import (
	"errors"
	"fmt"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/gitops/code"
)

// checkFreeze checks of freeze windows what the schema cannot check: their starts and time zones, and that they end.
func (d *Result) checkFreeze(tenant *v1alpha1.Tenant) {
	for i := range tenant.Spec.Freeze {
		var fault *freeze.Fault
		if errors.As(freeze.Check(&tenant.Spec.Freeze[i]), &fault) {
			at := fmt.Sprintf("spec.freeze[%d].%s", i, fault.Field)
			d.AddAt(code.InvalidFreeze, at, "%s: %s", at, fault.Why)
		}
	}
}
