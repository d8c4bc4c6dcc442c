package own

import (
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func labels(tenant, project, app string) map[string]string {
	found := map[string]string{}
	for label, value := range map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ProjectLabel: project, v1alpha1.AppLabel: app} {
		if value != "" {
			found[label] = value
		}
	}
	return found
}

func TestOwnersAreTheSameInAllTheirNames(t *testing.T) {
	ours := labels("acme", "shop", "web")
	cases := map[string]struct {
		theirs       map[string]string
		project, app bool
	}{
		"the app itself":                         {labels("acme", "shop", "web"), true, true},
		"another app of the project":             {labels("acme", "shop", "api"), true, false},
		"an app of the name, in another project": {labels("acme", "data", "web"), false, false},
		"an app of the name, of another tenant":  {labels("beta", "shop", "web"), false, false},
		"the project itself":                     {labels("acme", "shop", ""), true, false},
		"nobody":                                 {nil, false, false},
	}
	for name, c := range cases {
		if SameProject(c.theirs, ours) != c.project || SameApp(c.theirs, ours) != c.app {
			t.Errorf("%s: the same project %t, the same app %t", name, SameProject(c.theirs, ours), SameApp(c.theirs, ours))
		}
	}
	if !SameApp(nil, labels("", "", "")) {
		t.Error("two objects of nobody differ")
	}
}

func TestAnOwnerIsDescribedByItsDifferencesFromOurs(t *testing.T) {
	ours := labels("acme", "shop", "web")
	repository := labels("", "", "")
	repository[v1alpha1.RepositoryLabel] = "acme"
	cases := map[string]struct {
		theirs map[string]string
		want   string
	}{
		"an app of the same project":    {labels("acme", "shop", "api"), "app api"},
		"the same app":                  {labels("acme", "shop", "web"), "app web"},
		"an app of another project":     {labels("acme", "data", "api"), "app api of project data"},
		"an app of another tenant":      {labels("beta", "data", "api"), "app api of project data of tenant beta"},
		"a project of the name of ours": {labels("beta", "shop", "api"), "app api of tenant beta"},
		"another project":               {labels("acme", "data", ""), "project data"},
		"our project":                   {labels("acme", "shop", ""), ""},
		"a repository":                  {repository, "repository acme"},
		"nobody":                        {nil, ""},
	}
	for name, c := range cases {
		if got := Describe(c.theirs, ours); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheHomeOfAnObjectIsTheNamespaceOfItsProject(t *testing.T) {
	if got := HomeOf(labels("acme", "shop", "web")); got != "kubeop-acme-shop" {
		t.Errorf("got %s, want %q", got, "kubeop-acme-shop")
	}
}
