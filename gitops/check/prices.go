package check

import (
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
)

// checkPrices checks of a price list what the schema cannot check, such as periods that overlap.
func (d *Result) checkPrices(list *v1alpha1.PriceList) {
	for _, fault := range list.Spec.Faults() {
		kind := code.InvalidValue
		if fault.Several {
			kind = code.BrokenRule
		}
		d.AddAt(kind, fault.Field, "%s: %s", fault.Field, fault.Why)
	}
}
