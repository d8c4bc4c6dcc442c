package identity

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestAPlaceAndItsObjectNameEachOther(t *testing.T) {
	tests := map[string]struct {
		ref                     Ref
		object                  client.Object
		key, path, text, parent string
	}{
		"policy": {
			ref: Ref{Policy: "baseline"}, object: &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "baseline"}},
			key: "/baseline", path: "baseline", text: "Policy baseline",
		},
		"tenant": {
			ref: Ref{Tenant: "acme"}, object: &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}},
			key: "/acme", path: "acme", text: "Tenant acme",
		},
		"project": {
			ref: Ref{Tenant: "acme", Project: "shop"}, object: &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}},
			key: "kubeop-acme/shop", path: "acme/shop", text: "Project kubeop-acme/shop", parent: "acme",
		},
		"app of the platform": {
			ref: Ref{Tenant: "platform", Project: "cert-manager", App: "web"}, object: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "cert-manager", Name: "web"}},
			key: "cert-manager/web", path: "platform/cert-manager/web", text: "App cert-manager/web", parent: "platform/cert-manager",
		},
		"project of the platform": {
			ref: Ref{Tenant: "platform", Project: "cert-manager"}, object: &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "cert-manager"}},
			key: "kubeop-platform/cert-manager", path: "platform/cert-manager", text: "Project kubeop-platform/cert-manager", parent: "platform",
		},
		"app of a project with a dash": {
			ref: Ref{Tenant: "acme", Project: "shop-eu", App: "web"}, object: &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop-eu", Name: "web"}},
			key: "kubeop-acme-shop-eu/web", path: "acme/shop-eu/web", text: "App kubeop-acme-shop-eu/web", parent: "acme/shop-eu",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := Of(tc.object); !ok || got != tc.ref {
				t.Errorf("the object is %v, %t, want %v", got, ok, tc.ref)
			}
			if got := tc.ref.Key().String(); got != tc.key {
				t.Errorf("key %s, want %s", got, tc.key)
			}
			if tc.ref.Path() != tc.path || tc.ref.String() != tc.text || tc.ref.Parent().Path() != tc.parent {
				t.Errorf("got %s, %s in %s", tc.ref.Path(), tc.ref, tc.ref.Parent().Path())
			}
		})
	}
}

func TestKindsThatNoRepositoryDeclaresHaveNoPlace(t *testing.T) {
	for name, o := range map[string]client.Object{
		"an app in a home namespace":      &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}},
		"an app in the platform's home":   &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-platform", Name: "shop"}},
		"a project elsewhere":             &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}},
		"an app in a tenant's home":       &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "web"}},
		"a project in a project":          &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-", Name: "shop"}},
		"guardrails, which kubeop writes": &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "kubeop"}},
		"a repository, which is above":    &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}},
	} {
		if got, ok := Of(o); ok {
			t.Errorf("%s is at %v", name, got)
		}
	}
}
