package step

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// refusals has a series for each limit that was ever passed by a tenant that is there.
var refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kubeop_tenant_refused_total",
	Help: "Reconciliations that ended because a limit of spec.limits of a Tenant was passed, by the name of the field.",
}, []string{"tenant", "resource"})

// countRefusal counts the limit of the object's tenant that ended its reconciliation, if one did.
func countRefusal(obj Object, err error) {
	over := (*budget.Exceeded)(nil)
	if tenant := obj.GetLabels()[v1alpha1.TenantLabel]; tenant != "" && errors.As(err, &over) {
		refusals.WithLabelValues(tenant, over.Field.Name).Inc()
	}
}

// ForgetRefusals removes the series of a tenant that is gone.
func ForgetRefusals(tenant string) { refusals.DeletePartialMatch(prometheus.Labels{"tenant": tenant}) }
