package step

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
)

// refusals counts, for each existing tenant, how often each limit refused something.
var refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "kubeop_tenant_refused_total",
	Help: "Reconciliations that ended because a limit of spec.limits of a Tenant was passed, by the name of the field.",
}, []string{"tenant", "resource"})

// countRefusal counts a refusal if err says that a limit of the object's tenant ended the Reconcile.
func countRefusal(obj Object, err error) {
	over := (*budget.Exceeded)(nil)
	if tenant := obj.GetLabels()[v1alpha1.TenantLabel]; tenant != "" && errors.As(err, &over) {
		refusals.WithLabelValues(tenant, over.Field.Name).Inc()
	}
}

// ForgetRefusals removes the series of a deleted tenant.
func ForgetRefusals(tenant string) { refusals.DeletePartialMatch(prometheus.Labels{"tenant": tenant}) }
