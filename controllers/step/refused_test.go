package step

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestRefusalsAreCountedForTenantsThatAreThere(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "counted"}}}
	for _, err := range []error{
		fmt.Errorf("rendering: %w", &budget.Exceeded{Field: budget.AppBytes}),
		failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.PackBytes}, "too much"), failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.PackBytes}, "too much"),
		errors.New("something else"), nil,
	} {
		countRefusal(app, err)
	}
	countRefusal(&v1alpha1.App{}, &budget.Exceeded{Field: budget.AppBytes})
	if diff := cmp.Diff(map[string]float64{"counted/appBytes": 1, "counted/packBytes": 2}, refused(t)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	ForgetRefusals("counted")
	if left := refused(t); len(left) != 0 {
		t.Errorf("of a tenant that is gone is left: %v", left)
	}
}

// refused are the values of the metric by "tenant/resource".
func refused(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "kubeop_tenant_refused_total" {
			continue
		}
		for _, m := range family.GetMetric() { // Labels are sorted by name.
			values[m.GetLabel()[1].GetValue()+"/"+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return values
}
