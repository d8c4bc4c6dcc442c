package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestWhatAnnotationsProtect holds before and after a cache took from the object what nobody reads.
func TestWhatAnnotationsProtect(t *testing.T) {
	const release, policy = "meta.helm.sh/release-name", "helm.sh/resource-policy"
	for name, c := range map[string]struct {
		annotations map[string]string
		want        v1alpha1.PrunePolicy
	}{
		"nothing":                      {},
		"to be confirmed":              {map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}, v1alpha1.PolicyConfirm},
		"never deleted":                {map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}, v1alpha1.PolicyDisabled},
		"of a release, and kept":       {map[string]string{release: "web", policy: " Keep"}, v1alpha1.PolicyDisabled},
		"of a release":                 {map[string]string{release: "web"}, ""},
		"of no release, but annotated": {map[string]string{policy: "keep"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
			if got := annotatedPolicy(o); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if _, err := Slim(o); err != nil {
				t.Fatal(err)
			}
			if got := annotatedPolicy(o); got != c.want {
				t.Errorf("from a cache: got %q, want %q", got, c.want)
			}
		})
	}
}

// TestWhatIsRecordedHidesNoProtection: an object that was found to own claims is still of a kind that waits for confirmation.
func TestWhatIsRecordedHidesNoProtection(t *testing.T) {
	crd := ObjectID{Name: "engines.example.com", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	for _, recorded := range []v1alpha1.PrunePolicy{"", v1alpha1.PolicyConfirm, v1alpha1.PolicyClaims} {
		if got := protection(crd, v1alpha1.InventoryEntry{Policy: recorded}, nil); got != v1alpha1.PolicyConfirm {
			t.Errorf("recorded as %q it is protected by %q", recorded, got)
		}
	}
}
