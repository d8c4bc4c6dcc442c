package release

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stamping refuses ClusterRoles and labels everything else.
func stamping(objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() == "ClusterRole" {
			return errors.New("ClusterRole/" + u.GetName() + " is cluster-scoped")
		}
		u.SetLabels(map[string]string{"owner": "shop"})
	}
	return nil
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

const clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: root\n"

func TestGateStampsManifests(t *testing.T) {
	g := &gate{chart: &chart.Chart{}, admit: stamping}
	out, err := g.Run(bytes.NewBufferString("---\n# Source: web/templates/a.yaml\n" + configMap + "---\n# only a comment\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    owner: shop\n  name: a\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if !g.rendered || g.refused != nil {
		t.Errorf("rendered %v, refused %v", g.rendered, g.refused)
	}
}

func TestGateRefuses(t *testing.T) {
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(clusterRole), "\n", "\n  ")
	item := "- " + strings.TrimPrefix(indented, "  ")
	tests := map[string]string{
		"plain":                          "---\n" + clusterRole,
		"second":                         "---\n" + configMap + "---\n" + clusterRole,
		"in a List":                      "---\napiVersion: v1\nkind: List\nitems:\n" + item,
		"in a typed List without kinds":  "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleList\nitems:\n- metadata:\n    name: root\n",
		"in a List in a List":            "---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: rbac.authorization.k8s.io/v1\n    kind: ClusterRole\n    metadata:\n      name: root\n",
		"in the items of something else": "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nitems:\n" + item,
		"as JSON":                        "---\n" + `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"root"}}`,
		"through an alias":               "---\napiVersion: v1\nkind: List\nx: &r\n  apiVersion: rbac.authorization.k8s.io/v1\n  kind: ClusterRole\n  metadata:\n    name: root\nitems:\n- *r\n",
	}
	for name, manifest := range tests {
		t.Run(name, func(t *testing.T) {
			g := &gate{chart: &chart.Chart{}, admit: stamping}
			out, err := g.Run(bytes.NewBufferString(manifest))
			if err == nil || g.refused == nil {
				t.Fatalf("let through: %s", out)
			}
			if !strings.Contains(err.Error(), "ClusterRole/root is cluster-scoped") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestGateChecksHooksOfEveryEvent(t *testing.T) {
	for _, event := range []helm.HookEvent{helm.HookPreInstall, helm.HookPostDelete, helm.HookTest} {
		t.Run(string(event), func(t *testing.T) {
			g := &gate{chart: &chart.Chart{}, admit: stamping}
			hooks := []*helm.Hook{
				{Path: "web/templates/a.yaml", Manifest: configMap, Events: []helm.HookEvent{event}},
				{Path: "web/templates/b.yaml", Manifest: clusterRole, Events: []helm.HookEvent{event}},
			}
			if err := g.passHooks(hooks); err == nil || g.refused == nil {
				t.Error("a hook with a ClusterRole was let through")
			}
		})
	}
}

func TestGateStampsHooks(t *testing.T) {
	g := &gate{chart: &chart.Chart{}, admit: stamping}
	hook := &helm.Hook{Path: "web/templates/a.yaml", Manifest: "# why\n" + configMap}
	if err := g.passHooks([]*helm.Hook{hook}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(hook.Manifest, "owner: shop") {
		t.Errorf("not stamped: %s", hook.Manifest)
	}
}

func TestGateRefusesCRDs(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.com\n"
	tests := map[string]struct {
		file string
		want string
	}{
		"a definition":   {crd, "CustomResourceDefinition things.example.com (web/crds/a.yaml)"},
		"only a comment": {"# none\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sub := &chart.Chart{Metadata: &chart.Metadata{Name: "web"}}
			sub.Files = []*chart.File{{Name: "crds/a.yaml", Data: []byte(test.file)}}
			g := &gate{chart: sub, admit: stamping}
			_, err := g.Run(bytes.NewBufferString(""))
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || g.refused == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWhatIsNoObject(t *testing.T) {
	secret := "hunter22"
	tests := map[string]string{
		"text":           secret,
		"list":           "- " + secret,
		"no kind":        "apiVersion: v1\ndata: " + secret,
		"no apiVersion":  "kind: Secret\ndata: " + secret,
		"items no list":  "apiVersion: v1\nkind: List\nitems: " + secret,
		"item no object": "apiVersion: v1\nkind: List\nitems: [" + secret + "]",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse("---\n# Source: web/templates/x.yaml\n" + text + "\n")
			if err == nil || !strings.HasPrefix(err.Error(), "web/templates/x.yaml: ") || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want an error that names the template and shows no content", err)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	plain := errors.New("password hunter22 is bad")
	tests := map[string]struct {
		gate   gate
		err    error
		render bool
		denied bool
	}{
		"before rendering ended": {gate{}, plain, true, false},
		"storage":                {gate{storage: plain}, plain, false, false},
		"a lookup":               {gate{}, errors.New("error calling lookup: password hunter22"), false, false},
		"after rendering":        {gate{rendered: true}, plain, false, false},
		"refused":                {gate{rendered: true, refused: plain}, errors.New("wrapped"), false, true},
		"known as rendering":     {gate{rendered: true}, renderError(plain), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.gate.classify(test.err, []string{"hunter22"})
			if errors.Is(got, ErrRender) != test.render || errors.As(got, new(*NotAllowed)) != test.denied {
				t.Errorf("got %#v", got)
			}
			if strings.Contains(got.Error(), "hunter22") {
				t.Errorf("shows a secret: %v", got)
			}
		})
	}
}

// Helm puts words of its own before what the gate says.
func TestClassifyDropsWhatHelmAdds(t *testing.T) {
	g := &gate{chart: &chart.Chart{}, admit: stamping}
	_, err := g.Run(bytes.NewBufferString("---\n# Source: web/templates/a.yaml\n- text\n"))
	got := g.classify(fmt.Errorf("error while running post render on files: %w", err), nil)
	const want = "rendering the chart: web/templates/a.yaml: it is not an object"
	if !errors.Is(got, ErrRender) || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\n# Source: a\n" + configMap + "---\n" + clusterRole)
	f.Add("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n")
	f.Add("items: {}\n---\n[]\n---\nnull\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := parse(text)
		if err != nil {
			return
		}
		out, err := write(docs)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(out)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if diff := cmp.Diff(objectsOf(docs), objectsOf(again)); diff != "" {
			t.Errorf("what is applied differs from what was checked: %s", diff)
		}
		for _, u := range objectsOf(again) {
			if _, isList := u.Object["items"]; isList || u.GetKind() == "" {
				t.Errorf("an object could hide others: %v", u.Object)
			}
		}
	})
}
