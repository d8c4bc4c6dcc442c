package fingerprint

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// TestSlimKeepsPrunePolicy: an object has the same policy before and after a cache dropped what nobody reads.
func TestSlimKeepsPrunePolicy(t *testing.T) {
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
			if got := inventory.AnnotatedPolicy(o); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if _, err := Slim(o); err != nil {
				t.Fatal(err)
			}
			if got := inventory.AnnotatedPolicy(o); got != c.want {
				t.Errorf("from a cache: got %q, want %q", got, c.want)
			}
		})
	}
}
