package target

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// in returns a connection whose kubeconfig has a namespace.
func in(t *testing.T, namespace string) *Connection {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: here, clusters: [{name: c, cluster: {server: "https://localhost:1"}}],
contexts: [{name: here, context: {cluster: c, user: u, namespace: "` + namespace + `"}}], users: [{name: u}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New()
	*c.Flags.KubeConfig = file
	return c
}

func TestObjectsAreNamedByPathFlagsAndNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		args                       []string
		tenant, project, flag, ctx string
		want                       string
		wrong                      string
	}{
		"a path":                           {args: []string{"acme/shop/web"}, want: "app acme/shop/web"},
		"a path beats flags":               {args: []string{"acme/shop/web"}, tenant: "beta", project: "lab", want: "app acme/shop/web"},
		"a path beats the namespace":       {args: []string{"acme/shop/web"}, ctx: "kubeop-beta-lab", want: "app acme/shop/web"},
		"flags":                            {args: []string{"web"}, tenant: "acme", project: "shop", want: "app acme/shop/web"},
		"flags beat the namespace":         {args: []string{"web"}, tenant: "acme", project: "shop", ctx: "kubeop-beta-lab", want: "app acme/shop/web"},
		"the namespace of the kubeconfig":  {args: []string{"web"}, ctx: "kubeop-acme-shop", want: "app acme/shop/web"},
		"a namespace beats the kubeconfig": {args: []string{"web"}, flag: "kubeop-acme-my-shop", ctx: "kubeop-beta-lab", want: "app acme/my-shop/web"},
		"a project of the namespace's":     {args: []string{"lab/web"}, ctx: "kubeop-acme-shop", want: "app acme/lab/web"},
		"another project":                  {args: []string{"web"}, project: "lab", ctx: "kubeop-acme-shop", want: "app acme/lab/web"},
		"the home namespace":               {args: []string{"shop/web"}, ctx: "kubeop-acme", want: "app acme/shop/web"},
		"a kind":                           {args: []string{"app", "acme/shop/web"}, want: "app acme/shop/web"},
		"a project":                        {args: []string{"projects", "acme/shop"}, want: "project acme/shop"},
		"a project in the namespace":       {args: []string{"project", "shop"}, ctx: "kubeop-acme-lab", want: "project acme/shop"},
		"a tenant":                         {args: []string{"tenant", "acme"}, want: "tenant acme"},
		"a policy":                         {args: []string{"policies", "baseline"}, ctx: "kubeop-acme-shop", want: "policy baseline"},
		"a policy by its short name":       {args: []string{"pol", "baseline"}, want: "policy baseline"},
		"a registry":                       {args: []string{"registry", "hub"}, ctx: "kubeop-acme-shop", want: "registry hub"},
		"a repository":                     {args: []string{"repo", "acme"}, want: "repository acme"},
		"a kind with its group":            {args: []string{"apps.paas.kubeop.io", "acme/shop/web"}, want: "app acme/shop/web"},
		"an app of the platform":           {args: []string{"nginx"}, flag: "ingress", want: "app platform/ingress/nginx"},

		"a namespace of nobody":          {args: []string{"web"}, ctx: "default", wrong: `"web" does not say which tenant the app is in: write TENANT/PROJECT/web, or give --tenant`},
		"another tenant, and no project": {args: []string{"web"}, tenant: "beta", ctx: "kubeop-acme-shop", wrong: `"web" does not say which project the app is in: write PROJECT/web, or give --project`},
		"too long":                       {args: []string{"a/b/c/d"}, wrong: `"a/b/c/d" does not name one app: write TENANT/PROJECT/APP`},
		"a tenant with a project":        {args: []string{"tenant", "acme/shop"}, wrong: `"acme/shop" does not name one tenant: write TENANT`},
		"a policy of a tenant":           {args: []string{"policy", "acme/base"}, wrong: `"acme/base" does not name one policy: write POLICY`},
		"an empty part":                  {args: []string{"acme//web"}, wrong: `"acme//web" does not name one app: write TENANT/PROJECT/APP`},
		"nothing":                        {args: []string{""}, wrong: `"" does not name one app: write TENANT/PROJECT/APP`},
		"an unknown kind":                {args: []string{"pod", "web"}, wrong: `kubeop has no kind "pod"; its kinds are app, project, tenant, policy, registry, pricelist, cluster and repository`},
	} {
		t.Run(name, func(t *testing.T) {
			c := in(t, tc.ctx)
			c.Tenant, c.Project, *c.Flags.Namespace = tc.tenant, tc.project, tc.flag
			got, err := c.Object(tc.args)
			if tc.wrong != "" {
				if err == nil || err.Error() != tc.wrong {
					t.Errorf("got %v, want %s", err, tc.wrong)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestAnAppNeedsNoKindInArguments(t *testing.T) {
	ref := identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	got := []string{Object{App, ref}.Args(), Object{Project, ref.Parent()}.Args(), Object{Tenant, ref.Parent().Parent()}.Args()}
	if diff := cmp.Diff([]string{"acme/shop/web", "project acme/shop", "tenant acme"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEachKindMakesObjectsAndListsOfItself: `kubeop wait` watches the list, and the shell completes names of it.
func TestEachKindMakesObjectsAndListsOfItself(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds {
		for want, object := range map[string]runtime.Object{kind.Name: kind.New(), kind.Name + "List": kind.NewList()} {
			if gvk, err := apiutil.GVKForObject(object, scheme); err != nil || gvk.Kind != want {
				t.Errorf("the kind %s has a %s, want a %s (%v)", kind.Name, gvk.Kind, want, err)
			}
		}
	}
}
