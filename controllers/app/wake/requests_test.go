package wake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnObjectWakesTheAppThatDeliversIt, which is in the namespace of its project if the object is in none, or if it is of the platform and in no tenant's.
func TestAnObjectWakesTheAppThatDeliversIt(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	platform := map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "edge", v1alpha1.AppLabel: "web"}
	ofEdge := Requests([]types.NamespacedName{{Namespace: "edge", Name: "web"}})
	for name, c := range map[string]struct {
		object metav1.ObjectMeta
		want   []reconcile.Request
	}{
		"in a namespace":                   {metav1.ObjectMeta{Namespace: "kubeop-acme-other", Labels: labels}, Requests([]types.NamespacedName{{Namespace: "kubeop-acme-other", Name: "web"}})},
		"in none":                          {metav1.ObjectMeta{Labels: labels}, Requests([]types.NamespacedName{{Namespace: "kubeop-acme-shop", Name: "web"}})},
		"of the platform":                  {metav1.ObjectMeta{Namespace: "edge", Labels: platform}, ofEdge},
		"of the platform, elsewhere":       {metav1.ObjectMeta{Namespace: "kube-system", Labels: platform}, ofEdge},
		"of the platform, beside kubeop":   {metav1.ObjectMeta{Namespace: "kubeop-system", Labels: platform}, ofEdge},
		"of the platform, in no namespace": {metav1.ObjectMeta{Labels: platform}, ofEdge},
		"of a tenant that says it is of the platform": {
			metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Labels: platform}, Requests([]types.NamespacedName{{Namespace: "kubeop-acme-shop", Name: "web"}}),
		},
		"of a tenant, elsewhere": {metav1.ObjectMeta{Namespace: "kube-system", Labels: labels}, Requests([]types.NamespacedName{{Namespace: "kube-system", Name: "web"}})},
		"of no app":              {metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}, nil},
	} {
		if diff := cmp.Diff(c.want, Delivering(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: c.object})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	both := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "a", Name: "x"}}, {NamespacedName: types.NamespacedName{Namespace: "b", Name: "y"}}}
	if diff := cmp.Diff(both, Requests([]types.NamespacedName{{Namespace: "a", Name: "x"}, {Namespace: "b", Name: "y"}})); diff != "" {
		t.Errorf("of two (-want +got):\n%s", diff)
	}
}
