package source

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAPushWakesTheAppsMadeFromIt: those of the tenant, or all of them for a push to the platform repository.
func TestAPushWakesTheAppsMadeFromIt(t *testing.T) {
	app := func(tenant, name, url string) *v1alpha1.App {
		a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.ProjectNamespace(tenant, "shop"), Name: name, Labels: map[string]string{v1alpha1.TenantLabel: tenant},
		}}
		if url != "" {
			a.Spec.Git = &v1alpha1.GitSource{URL: url}
		}
		return a
	}
	chart := app("alpha", "chart", "")
	chart.Spec.Helm = &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: "https://git.example.com/Alpha/web.git"}}
	r := &Fetcher{Client: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithIndex(&v1alpha1.App{}, ByURL, URLs).WithObjects(
		app("alpha", "web", "https://git.example.com/alpha/web"), chart, app("alpha", "other", "https://git.example.com/alpha/other"),
		app("alpha", "raw", ""), app("beta", "web", "https://git.example.com/alpha/web/"),
	).Build()}
	repository := func(tenant, url, pushed string) *v1alpha1.Repository {
		return &v1alpha1.Repository{
			ObjectMeta: metav1.ObjectMeta{Name: "r", Annotations: map[string]string{v1alpha1.PushedAnnotation: pushed}},
			Spec:       v1alpha1.RepositorySpec{URL: url, Tenant: tenant},
		}
	}
	for name, c := range map[string]struct {
		of   *v1alpha1.Repository
		want []string
	}{
		"to the tenant's repository": {repository("alpha", "https://git.example.com/alpha/web.git", ""), []string{"kubeop-alpha-shop/chart", "kubeop-alpha-shop/web"}},
		"to another":                 {repository("alpha", "https://git.example.com/alpha/main", ""), nil},
		"to a source, by the hook": {
			repository("alpha", "https://git.example.com/alpha/main", "2026-01-01T00:00:00Z https://git.example.com/alpha/other"), []string{"kubeop-alpha-shop/other"},
		},
		"to the platform repository": {
			repository("", "https://git.example.com/alpha/web", ""), []string{"kubeop-alpha-shop/chart", "kubeop-alpha-shop/web", "kubeop-beta-shop/web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(r.pushed(t.Context(), c.of)); !slices.Equal(got, c.want) {
				t.Errorf("woke %v, want %v", got, c.want)
			}
		})
	}
}

func names(apps []types.NamespacedName) []string {
	var all []string
	for _, app := range apps {
		all = append(all, app.String())
	}
	slices.Sort(all)
	return all
}
