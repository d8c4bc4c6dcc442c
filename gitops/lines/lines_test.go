package lines

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/gitops/code"
)

// TestRefusalsAreAtTheirLines: of manifests in the app's folder, and of fields of app.yaml. The manifests of a Git App are in another repository.
func TestRefusalsAreAtTheirLines(t *testing.T) {
	const head = "kind: App\nspec:\n"
	refused := func(rule, object string, at policy.Place) *policy.Violation {
		return &policy.Violation{Object: object, Rule: rule, Why: "has the host b.example, which is wrong", At: at}
	}
	for name, c := range map[string]struct {
		app string
		err error
		// want are the problems, each with its first line.
		want []string
	}{
		"a manifest": {"  raw: {path: m}\n", refused("X", "Pod/a", policy.Place{}), []string{"a/app/m/all.yaml:2: Pod/a has the host b.example, which is wrong"}},
		"two of one line, and what is nowhere": {"  raw: {path: m}\n", errors.Join(refused("X", "Pod/a", policy.Place{}), refused("X", "Pod/c", policy.Place{}), refused("Y", "Pod/a", policy.Place{})),
			[]string{"a/app/m/all.yaml:2: Pod/a has the host b.example, which is wrong\nPod/a has the host b.example, which is wrong\nPod/c has the host b.example, which is wrong"}},
		"nowhere":                    {"  raw: {path: m}\n", refused("X", "Pod/c", policy.Place{}), []string{"a/app/app.yaml: Pod/c has the host b.example, which is wrong"}},
		"a manifest in app.yaml":     {"  raw:\n    manifests:\n    - {kind: Pod, metadata: {name: b}}\n    - {kind: Pod, metadata: {name: a}}\n", refused("X", "Pod/a", policy.Place{}), []string{"a/app/app.yaml:6:7: Pod/a has the host b.example, which is wrong"}},
		"of another repository":      {"  git: {url: https://a.example/b}\n", refused("X", "Pod/a", policy.Place{File: "m/x.yaml", Line: 3}), []string{"a/app/app.yaml: m/x.yaml:3: Pod/a has the host b.example, which is wrong"}},
		"a repository":               {"  git:\n    url: https://a.example/b\n", refused(guardrails.Sources, "App/app", policy.Place{}), []string{"a/app/app.yaml:4:5: App/app has the host b.example, which is wrong"}},
		"an artifact":                {"  git:\n    oci: {url: oci://a.example/b}\n", refused(guardrails.Sources, "App/app", policy.Place{}), []string{"a/app/app.yaml:4:11: App/app has the host b.example, which is wrong"}},
		"a chart in a repository":    {"  helm:\n    repository: https://a.example\n", refused(guardrails.Sources, "App/app", policy.Place{}), []string{"a/app/app.yaml:4:5: App/app has the host b.example, which is wrong"}},
		"a chart in Git":             {"  helm:\n    git: {url: https://a.example}\n", refused(guardrails.Sources, "App/app", policy.Place{}), []string{"a/app/app.yaml:4:11: App/app has the host b.example, which is wrong"}},
		"an object of a chart":       {"  helm:\n    path: chart\n", refused("X", "Pod/a", policy.Place{}), []string{"a/app/app.yaml: Pod/a has the host b.example, which is wrong"}},
		"an image":                   {"  image: {reference: a}\n", refused(guardrails.Images, "Pod/a", policy.Place{}), []string{"a/app/app.yaml:3:11: Pod/a has the host b.example, which is wrong"}},
		"the host":                   {"  host: b.example\n  image: {reference: a}\n", refused(guardrails.Hostnames, "Ingress/a", policy.Place{}), []string{"a/app/app.yaml:3:3: Ingress/a has the host b.example, which is wrong"}},
		"one of the hosts":           {"  hosts: [{host: a.example}, {host: b.example}]\n  image: {reference: a}\n", refused(guardrails.Hostnames, "Ingress/a", policy.Place{}), []string{"a/app/app.yaml:3:30: Ingress/a has the host b.example, which is wrong"}},
		"a host that nobody wrote":   {"  hosts: [{host: a.example}]\n  image: {reference: a}\n", refused(guardrails.Hostnames, "Ingress/a", policy.Place{}), []string{"a/app/app.yaml:3:3: Ingress/a has the host b.example, which is wrong"}},
		"two manifests of one name":  {"  raw:\n    manifests:\n    - {kind: Pod, metadata: {name: a}}\n    - {kind: Pod, metadata: {name: a}}\n", refused("X", "Pod/a", policy.Place{}), []string{"a/app/app.yaml:5:7: Pod/a has the host b.example, which is wrong"}},
		"an image in a manifest":     {"  raw:\n    manifests:\n    - {kind: Pod, metadata: {name: a}}\n", refused(guardrails.Images, "Pod/a", policy.Place{}), []string{"a/app/app.yaml:5:7: Pod/a has the host b.example, which is wrong"}},
		"a host in a manifest":       {"  raw:\n    manifests:\n    - {kind: Ingress, metadata: {name: a}}\n", refused(guardrails.Hostnames, "Ingress/a", policy.Place{}), []string{"a/app/app.yaml:5:7: Ingress/a has the host b.example, which is wrong"}},
		"another rule, with a host":  {"  host: b.example\n  image: {reference: a}\n", refused("X", "Ingress/a", policy.Place{}), []string{"a/app/app.yaml: Ingress/a has the host b.example, which is wrong"}},
		"a source of manifests":      {"  raw: {path: n}\n", refused(guardrails.Sources, "App/app", policy.Place{}), []string{"a/app/app.yaml: App/app has the host b.example, which is wrong"}},
		"an image that has no field": {"  image: {reference: a}\n", refused("X", "Pod/a", policy.Place{}), []string{"a/app/app.yaml: Pod/a has the host b.example, which is wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{}
			if err := yaml.Unmarshal([]byte(head+c.app), app); err != nil {
				t.Fatal(err)
			}
			d := Declaration{App: app, File: "a/app/app.yaml", Files: fstest.MapFS{
				"a/app/app.yaml": {Data: []byte(head + c.app)}, "a/app/m/all.yaml": {Data: []byte("---\nkind: Pod\nmetadata: {name: a}\n")},
			}}
			problems := d.Findings(c.err)
			var got []string
			for _, p := range problems {
				got = append(got, p.Place()+": "+p.Why)
				if p.Code != "not-allowed" {
					t.Errorf("got %+v", p)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			delete(d.Files.(fstest.MapFS), "a/app/app.yaml")
			if len(d.Findings(c.err)) == 0 {
				t.Error("there is no problem without the file")
			}
			away := errors.New("away")
			for code, err := range map[code.Code]error{code.NotAllowed: errors.Join(c.err, away), code.RenderFailed: away} {
				if got := d.Findings(err); len(got) != 1 || got[0].Code != code || got[0].Why != err.Error() || got[0].Place() != "a/app/app.yaml" {
					t.Errorf("of %v: got %+v", err, got)
				}
			}
		})
	}
}
