package flow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATenantsFlowSchemasNameItsNamespaces(t *testing.T) {
	if got := Schemas("acme", nil, nil); got != nil {
		t.Errorf("a tenant without projects has %v", got)
	}
	labels := map[string]string{"paas.kubeop.io/tenant": "acme"}
	var got []string
	for _, s := range Schemas("acme", labels, []string{"kubeop-acme-a", "kubeop-acme-b"}) {
		if diff := cmp.Diff(labels, s.Labels); diff != "" {
			t.Error(diff)
		}
		text := *s.Name + " of " + *s.Spec.PriorityLevelConfiguration.Name + ":"
		for _, subject := range s.Spec.Rules[0].Subjects {
			text += " " + *subject.ServiceAccount.Namespace + "/" + *subject.ServiceAccount.Name
		}
		got = append(got, text)
	}
	want := []string{
		"kubeop-deployers-acme of kubeop: kubeop-acme-a/kubeop-deployer kubeop-acme-b/kubeop-deployer",
		"kubeop-tenant-acme of kubeop-tenants: kubeop-acme-a/* kubeop-acme-b/*",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
