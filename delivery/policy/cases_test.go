package policy

import (
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/testenv/bounded"
)

// TestObjectsAreHeldToTheRulesForAllTenants judges each object of the cases. controllers has a test that asks an API server about the same cases.
func TestObjectsAreHeldToTheRulesForAllTenants(t *testing.T) {
	tenant, cases := bounded.Read(t, "testdata/cases.yaml", namespace)
	bounds := Bounds{
		Namespace: namespace, Taints: tenant.Taints, IngressAnnotations: tenant.IngressAnnotations, CSIDrivers: tenant.CSIDrivers,
		PriorityClasses: tenant.PriorityClasses, GracePeriod: tenant.MaxTerminationGracePeriod.Duration,
		ExternalNames: tenant.ExternalNames, ExternalIPs: tenant.ExternalIPs,
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			found, err := check(c.Object, bounds, scope)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.Refused == "" && len(found) > 0:
				t.Errorf("it is refused: %v", found[0])
			case c.Refused != "" && (len(found) != 1 || found[0].Rule != c.Rule || !strings.HasPrefix(found[0].Why, c.Refused)):
				t.Errorf("got %+v, want only %s: %q", found, c.Rule, c.Refused)
			}
		})
	}
}
