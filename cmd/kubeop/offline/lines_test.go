package offline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestARefusalNamesTheLineOfWhatIsRefused: of the manifest, also one of a kustomization's base, or of the field of app.yaml.
func TestARefusalNamesTheLineOfWhatIsRefused(t *testing.T) {
	pod := func(name, image string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: a, image: " + image + "}]}\n"
	}
	const bad, good = "evil.org/a:1", "registry.example.com/acme/a:1"
	inline := declares("App", "web", "\n  type: Raw\n  raw:\n    manifests:\n    - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n    - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: "+bad+"}]}}")
	hosted := strings.Replace(strings.Replace(app, "web:1}", "web:1, ports: [{name: http, port: 80}]}", 1), "  image:", "  hosts:\n  - host: a.example.com\n  - host: b.evil.org\n  image:", 1)
	rules := map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{default: true, images: {allow: [registry.example.com/acme]}, hostnames: {suffixes: [example.com]}}")}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a document":          {inApp(folderApp, map[string]string{"m/a.yaml": settings + "---\n# The pod.\n" + pod("b", bad)}), []string{"projects/shop/apps/web/m/a.yaml:7: Pod/b has the image evil.org/a:1, "}},
		"two files":           {inApp(folderApp, map[string]string{"m/a.yaml": pod("a", bad), "m/b.yaml": pod("c", good) + "---\n" + pod("b", bad)}), []string{"projects/shop/apps/web/m/a.yaml:1: Pod/a has ", "for policy standard: change that in Git", "projects/shop/apps/web/m/b.yaml:6: Pod/b has "}},
		"two rules of one":    {inApp(folderApp, map[string]string{"m/a.yaml": strings.Replace(pod("a", bad), "spec: {", "spec: {hostNetwork: true, ", 1)}), []string{"projects/shop/apps/web/m/a.yaml:1: Pod/a has the image evil.org/a:1, ", "Pod/a breaks rule hostNamespaces "}},
		"in app.yaml":         {inApp(inline, nil), []string{"projects/shop/apps/web/app.yaml:9:7: Pod/a has the image "}},
		"the image":           {inApp(strings.Replace(app, "registry.example.com/acme/web:1", bad, 1), nil), []string{"projects/shop/apps/web/app.yaml:6:11: Deployment/web has the image "}},
		"one of the hosts":    {inApp(hosted, nil), []string{"projects/shop/apps/web/app.yaml:8:5: Ingress/web has the host b.evil.org, "}},
		"twice in the folder": {inApp(folderApp, map[string]string{"m/a.yaml": pod("a", bad), "other/a.yaml": pod("a", good)}), []string{"projects/shop/apps/web/m/a.yaml:1: Pod/a has "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := run(t, "--policies", platformWith(t, rules), write(t, c.files))
			var got []string
			for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
				if i < len(c.want) && strings.HasPrefix(line, c.want[i]) {
					line = c.want[i]
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); err == nil || diff != "" {
				t.Errorf("%v: -want +got:\n%s", err, diff)
			}
		})
	}
}

// TestTheSecondProjectWithAHostIsReportedAtItsLine, whatever the type of its app.
func TestTheSecondProjectWithAHostIsReportedAtItsLine(t *testing.T) {
	hosted := strings.Replace(strings.Replace(app, "web:1}", "web:1, ports: [{name: http, port: 80}]}", 1), "  image:", "  host: www.example.com\n  image:", 1)
	ingress := "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: all}\nspec: {rules: [{host: WWW.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}\n"
	files := repository(map[string]string{
		"projects/blog/project.yaml": declares("Project", "blog", "{}"), "projects/blog/apps/web/app.yaml": hosted,
		"projects/shop/apps/web/app.yaml": hosted, "projects/shop/apps/all/app.yaml": strings.Replace(folderApp, "web", "all", 1), "projects/shop/apps/all/m/a.yaml": settings + "---\n" + ingress,
	})
	out, _, err := run(t, write(t, files))
	want := "projects/shop/apps/all/m/a.yaml:6: Ingress/all has the host WWW.example.com, which app acme/blog/web has in the same commit; a host name belongs to one project: remove it there, or choose another one, in Git [not-allowed]\n" +
		"projects/shop/apps/web/app.yaml:6:3: Ingress/web has the host www.example.com, which app acme/blog/web has in the same commit; a host name belongs to one project: remove it there, or choose another one, in Git [not-allowed]\n"
	if diff := cmp.Diff(want, out); err == nil || diff != "" {
		t.Errorf("%v: -want +got:\n%s", err, diff)
	}
}
