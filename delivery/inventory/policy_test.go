package inventory

import (
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestRecordedPolicyHidesNoStricterOne: an object that was found to own claims is still of a kind that waits for confirmation.
func TestRecordedPolicyHidesNoStricterOne(t *testing.T) {
	crd := ObjectID{Name: "engines.example.com", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	for _, recorded := range []v1alpha1.PrunePolicy{"", v1alpha1.PolicyConfirm, v1alpha1.PolicyClaims} {
		if got := PolicyOf(crd, v1alpha1.InventoryEntry{Policy: recorded}, nil); got != v1alpha1.PolicyConfirm {
			t.Errorf("recorded as %q it is protected by %q, want %q", recorded, got, v1alpha1.PolicyConfirm)
		}
	}
}
