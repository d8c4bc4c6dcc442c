package target

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

func TestATenantWithoutARepositoryIsInThePlatforms(t *testing.T) {
	s := memory.Serve(t, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "small"}},
		&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "platform"}})
	c := New()
	c.Flags.KubeConfig = &s.Kubeconfig
	for name, tc := range map[string]struct {
		of          Object
		want, fails string
	}{
		"an app":                       {Object{App, identity.Ref{Tenant: "acme", Project: "shop", App: "web"}}, "acme", ""},
		"an app without a repository":  {Object{App, identity.Ref{Tenant: "small", Project: "shop", App: "web"}}, "platform", ""},
		"a project without one":        {Object{Project, identity.Ref{Tenant: "small", Project: "shop"}}, "platform", ""},
		"an app of the platform":       {Object{App, identity.Ref{Tenant: "platform", Project: "shop", App: "web"}}, "platform", ""},
		"a tenant":                     {Object{Tenant, identity.Ref{Tenant: "acme"}}, "platform", ""},
		"a registry":                   {Object{Registry, identity.Ref{Registry: "ghcr"}}, "platform", ""},
		"a policy":                     {Object{Policy, identity.Ref{Policy: "standard"}}, "platform", ""},
		"a repository":                 {Object{Repository, identity.Ref{Tenant: "acme"}}, "acme", ""},
		"a tenant that does not exist": {Object{App, identity.Ref{Tenant: "acne", Project: "shop", App: "web"}}, "", "reading the tenant acne: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.RepositoryOf(t.Context(), tc.of)
			if got.Ref.Tenant != tc.want || tc.want != "" && got.Kind.Name != v1alpha1.RepositoryKind || (err != nil) != (tc.fails != "") || err != nil && !strings.HasPrefix(err.Error(), tc.fails) {
				t.Errorf("got %v, %v, want %q, %q", got, err, tc.want, tc.fails)
			}
		})
	}
	if n := s.EachRequest(t, func() error {
		_, err := c.RepositoryOf(t.Context(), Object{App, identity.Ref{Tenant: "small", Project: "shop", App: "web"}})
		return err
	}); n != 2 {
		t.Errorf("%d requests", n)
	}
}
