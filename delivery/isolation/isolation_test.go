package isolation

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEgressLeavesOut writes what is left out of a range into the policy, and nothing where nothing is.
func TestEgressLeavesOut(t *testing.T) {
	rules := Rules{Egress: []Range{{CIDR: "0.0.0.0/0", Except: []string{"10.0.0.0/8", "169.254.0.0/16"}}, {CIDR: "203.0.113.0/24"}}}
	for _, p := range Policies("kubeop-acme-shop", nil, rules) {
		if *p.Name != "kubeop-egress" {
			continue
		}
		text, err := json.Marshal(p.Spec)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["10.0.0.0/8","169.254.0.0/16"]}},{"ipBlock":{"cidr":"203.0.113.0/24"}}]}],"policyTypes":["Egress"]}`
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return
	}
	t.Error("there is no policy kubeop-egress")
}

// TestNoEgressIsNoRule: a rule without peers would let everything through.
func TestNoEgressIsNoRule(t *testing.T) {
	for _, p := range Policies("kubeop-acme-shop", nil, Rules{}) {
		if *p.Name == "kubeop-egress" && len(p.Spec.Egress) > 0 {
			t.Errorf("it has %d rules", len(p.Spec.Egress))
		}
	}
}
