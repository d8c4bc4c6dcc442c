package app

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAProjectWithoutANamespaceWakesNoApps: each project of a first sync sends such an event, and a list without
// a namespace would list the apps of all tenants.
func TestAProjectWithoutANamespaceWakesNoApps(t *testing.T) {
	lists := 0
	web := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-alpha-shop", Name: "web"}}
	w := &wakes{cluster: Cluster{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(web).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, of ...client.ListOption) error {
			lists++
			return c.List(ctx, list, of...)
		},
	}).Build()}}
	project := &v1alpha1.Project{}
	if got := w.ofProject(t.Context(), project); len(got) != 0 || lists != 0 {
		t.Errorf("woke %v with %d lists", got, lists)
	}
	project.Status.Namespace = "kubeop-alpha-shop"
	if got := w.ofProject(t.Context(), project); !slices.Equal(got, []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(web)}}) {
		t.Errorf("woke %v", got)
	}
}
