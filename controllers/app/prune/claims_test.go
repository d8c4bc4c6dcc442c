package prune

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestClaimsAreRetainedUnlessTheInnermostPolicyIsDelete(t *testing.T) {
	const retain, remove = v1alpha1.ClaimRetain, v1alpha1.ClaimDelete
	cases := map[string]struct {
		app, project, tenant v1alpha1.ClaimDeletionPolicy
		want                 bool
	}{
		"no policy at all":                  {"", "", "", true},
		"the tenant's":                      {"", "", remove, false},
		"the project's before the tenant's": {"", retain, remove, true},
		"the project's":                     {"", remove, retain, false},
		"the app's before both":             {retain, remove, remove, true},
		"the app's":                         {remove, retain, retain, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			app := webApp()
			app.Spec.ClaimDeletionPolicy = c.app
			project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
			project.Spec.ClaimDeletionPolicy, tenant.Spec.ClaimDeletionPolicy = c.project, c.tenant
			b := newFixture(t, app, interceptor.Funcs{}, project, tenant)
			got, err := b.Retains(t.Context(), b.s)
			if err != nil || got != c.want {
				t.Errorf("retained: %t, error %v", got, err)
			}
		})
	}
}

func TestAPolicyThatCannotBeReadIsAnError(t *testing.T) {
	for want, unread := range map[string]client.Object{
		"reading project kubeop-acme/shop: down": &v1alpha1.Project{}, "reading tenant acme: down": &v1alpha1.Tenant{},
	} {
		b := newFixture(t, webApp(), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			_, project := o.(*v1alpha1.Project)
			if _, fails := unread.(*v1alpha1.Project); fails == project {
				return errors.New("down")
			}
			return c.Get(ctx, key, o, opts...)
		}})
		if _, err := b.Retains(t.Context(), b.s); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestOnlyTheValueAllConfirmsTheRemovalOfAnApp(t *testing.T) {
	for value, want := range map[string]bool{"": false, v1alpha1.ConfirmAll: true, "All": false, "0123456789abcdef": false} {
		app := webApp()
		app.SetAnnotations(map[string]string{v1alpha1.ConfirmAnnotation: value})
		if got := RemovalConfirmed(app); got != want {
			t.Errorf("annotation %q: confirmed is %t, want %t", value, got, want)
		}
	}
}

func TestOnlyClaimsOfTheAppAreDeletedWithItsRelease(t *testing.T) {
	elsewhere := labelled(boundClaim("elsewhere"), "web")
	elsewhere.SetNamespace("kubeop-acme-other")
	otherTenant := labelled(boundClaim("tenant"), "web")
	otherTenant.GetLabels()[v1alpha1.TenantLabel] = "beta"
	b := newFixture(t, webApp(), interceptor.Funcs{}, labelled(boundClaim("data"), "web"), labelled(boundClaim("other"), "api"), elsewhere, otherTenant)
	if err := DeleteClaims(t.Context(), b.s); err != nil {
		t.Fatal(err)
	}
	all := &corev1.PersistentVolumeClaimList{}
	if err := b.api.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, c := range all.Items {
		left = append(left, c.Name)
	}
	if got := strings.Join(left, " "); got != "elsewhere other tenant" {
		t.Errorf("the remaining claims are %s, want %q", got, "elsewhere other tenant")
	}
	refused := newFixture(t, webApp(), interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
		return errors.New("refused")
	}}, labelled(boundClaim("data"), "web"))
	if err := DeleteClaims(t.Context(), refused.s); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a claim that cannot be deleted: %v", err)
	}
	b.s.Client = interceptor.NewClient(b.api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("down")
	}})
	if err := DeleteClaims(t.Context(), b.s); err == nil || err.Error() != "listing the claims of the release: down" {
		t.Errorf("error %v", err)
	}
}

func TestClaimsInTheWayNamesTheSolution(t *testing.T) {
	cause := errors.New("StatefulSet db owns claim data")
	err := ClaimsInTheWay(cause, "delete it yourself")
	if !errors.Is(err, cause) || err.Error() != "StatefulSet db owns claim data, delete it yourself" {
		t.Errorf("error %v", err)
	}
}
