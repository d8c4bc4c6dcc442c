package project

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestAFailedListOfProjectsIsLogged(t *testing.T) {
	b := newFixture(t, shop())
	var logged []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	want := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "kubeop-acme", Name: "shop"}}}
	if diff := cmp.Diff(want, b.projectsOf(ctx, acme())); diff != "" || len(logged) != 0 {
		t.Errorf("logged %v (-want +got):\n%s", logged, diff)
	}
	b.fault = func(_ string, o any, _ string) error {
		if _, is := o.(*v1alpha1.ProjectList); is {
			return errAway
		}
		return nil
	}
	if got := b.projectsOf(ctx, acme()); got != nil {
		t.Errorf("got %v", got)
	}
	if len(logged) != 1 || !strings.Contains(logged[0], errAway.Error()) || !strings.Contains(logged[0], `"acme"`) {
		t.Errorf("logged %v", logged)
	}
}
