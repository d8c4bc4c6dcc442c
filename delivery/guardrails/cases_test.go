package guardrails_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/internal/testenv/ruled"
)

// TestObjectsAreJudged judges each object of the cases. controllers has a test that asks an API server about the same cases.
func TestObjectsAreJudged(t *testing.T) {
	for _, group := range ruled.Read(t, "testdata/cases.yaml") {
		rules := guardrails.Of(group.Policies)
		for _, applied := range rules.Deny {
			if images := group.Signed[applied.Policy]; images != nil {
				rules.Signed = append(rules.Signed, v1alpha1.SignedImages{Signatures: applied.Signatures, Images: images})
			}
		}
		for _, c := range group.Cases {
			t.Run(c.Name, func(t *testing.T) {
				var refused []string
				// The API server of the other test has no default IngressClass.
				for _, v := range slices.Concat(guardrails.Check(c.Object, &rules), guardrails.Unnamed(c.Object, &rules, classes.Usual{NoIngress: true})) {
					if v.Action == v1alpha1.DenyAction {
						refused = append(refused, fmt.Sprintf("%s: %s", v.Policy, v.Field))
					}
				}
				if diff := cmp.Diff(c.Refused, refused); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}
