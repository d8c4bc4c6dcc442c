package wake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAnObjectWakesTheAppThatDeliversIt, which is in the namespace of its project if the object is in none.
func TestAnObjectWakesTheAppThatDeliversIt(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	for name, c := range map[string]struct {
		object metav1.ObjectMeta
		want   []reconcile.Request
	}{
		"in a namespace": {metav1.ObjectMeta{Namespace: "kubeop-acme-other", Labels: labels}, Requests([]types.NamespacedName{{Namespace: "kubeop-acme-other", Name: "web"}})},
		"in none":        {metav1.ObjectMeta{Labels: labels}, Requests([]types.NamespacedName{{Namespace: "kubeop-acme-shop", Name: "web"}})},
		"of no app":      {metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}}, nil},
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
