package plan

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/gitops/identity"
)

// serving returns an Ingress with these hosts.
func serving(hosts ...string) []*unstructured.Unstructured {
	var rules []any
	for _, host := range hosts {
		rules = append(rules, map[string]any{"host": host})
	}
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"rules": rules},
	}}}
}

// TestAHostNameOfACommitBelongsToOneProject, in whatever form it is written.
func TestAHostNameOfACommitBelongsToOneProject(t *testing.T) {
	type app struct {
		path  string
		hosts []string
	}
	for name, c := range map[string]struct {
		apps []app
		want string
	}{
		"different names":                     {apps: []app{{"acme/shop/web", []string{"a.example"}}, {"acme/blog/web", []string{"b.example"}}}},
		"two apps of a project":               {apps: []app{{"acme/shop/web", []string{"a.example"}}, {"acme/shop/api", []string{"a.example"}}}},
		"twice in an app":                     {apps: []app{{"acme/shop/web", []string{"a.example", "a.example"}}}},
		"two projects":                        {apps: []app{{"acme/shop/web", []string{"b.example", "a.example"}}, {"acme/blog/web", []string{"A.example."}}}, want: "Ingress/web has the host A.example., which app acme/shop/web has in the same commit; a host name belongs to one project: remove it there, or choose another one, in Git"},
		"a wildcard of the tenant":            {apps: []app{{"acme/shop/web", []string{"*.example"}}, {"acme/blog/web", []string{"a.example"}}}},
		"the same wildcard":                   {apps: []app{{"acme/shop/web", []string{"*.example"}}, {"acme/blog/web", []string{"*.example"}}}, want: "Ingress/web has the host *.example, which app acme/shop/web has"},
		"a name below another's wildcard":     {apps: []app{{"acme/shop/web", []string{"*.example"}}, {"rival/blog/web", []string{"a.b.example"}}}},
		"a wildcard above another's name":     {apps: []app{{"acme/shop/web", []string{"a.example"}}, {"rival/blog/web", []string{"*.example"}}}},
		"what is no host name, and every one": {apps: []app{{"acme/shop/web", []string{"_", ""}}, {"rival/blog/web", []string{"_", ""}}}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, got := Hosts{}, ""
			for _, a := range c.apps {
				parts := strings.Split(a.path, "/")
				if err := hosts.Add(identity.Ref{Tenant: parts[0], Project: parts[1], App: parts[2]}, HostsOf(serving(a.hosts...))); err != nil {
					got += err.Error()
				}
			}
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestOnlySoManyHostNamesAreNamed, because a chart may have thousands.
func TestOnlySoManyHostNamesAreNamed(t *testing.T) {
	var names []string
	for i := range mostHosts + 7 {
		names = append(names, fmt.Sprintf("h%d.example", i))
	}
	hosts := Hosts{}
	if err := hosts.Add(identity.Ref{Tenant: "acme", Project: "shop", App: "web"}, HostsOf(serving(names...))); err != nil {
		t.Fatal(err)
	}
	err := hosts.Add(identity.Ref{Tenant: "acme", Project: "blog", App: "web"}, HostsOf(serving(names...)))
	if found, _ := policy.Violations(err); len(found) != mostHosts+1 || !strings.Contains(err.Error(), "the app has 7 more host names that other apps have in the same commit") {
		t.Errorf("got %d: %v", len(found), err)
	}
}

// TestAPlanNamesTheSecondProjectWithAHost, at its line: that of a new app, if the other one is there already.
func TestAPlanNamesTheSecondProjectWithAHost(t *testing.T) {
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}\n"
	w := newWorld(t)
	w.itself = true
	w.app("web", ingress)
	w.live("web")
	w.file("projects/blog/project.yaml", v1alpha1.ProjectKind, "blog", "")
	for name, file := range w.files {
		if rest, ok := strings.CutPrefix(name, "projects/shop/apps/web/"); ok {
			w.files["projects/blog/apps/web/"+rest] = &fstest.MapFile{Data: append([]byte("# The blog's.\n"), file.Data...)}
		}
	}
	made := w.plan(identity.Ref{})
	got := map[string]string{}
	for _, a := range made.Apps {
		got[a.App] = a.Failed
	}
	want := map[string]string{"acme/shop/web": "", "acme/blog/web": "projects/blog/apps/web/manifests/objects.yaml:2: Ingress/web has the host a.example, which app acme/shop/web has in the same commit; " +
		"a host name belongs to one project: remove it there, or choose another one, in Git"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
