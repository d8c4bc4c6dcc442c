package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/mask"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/render/objectset"
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

// always says of each error of admission that it is a refusal.
func always(error) bool { return true }

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

const clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: root\n"

func TestGateStampsManifests(t *testing.T) {
	g := NewGate(stamping, always, nil, nil)
	out, err := g.Run(bytes.NewBufferString("---\n# Source: web/templates/a.yaml\n" + configMap + "---\n# only a comment\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels:\n    owner: shop\n  name: a\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if !g.Rendered || g.Refused != nil {
		t.Errorf("rendered %v, refused %v", g.Rendered, g.Refused)
	}
}

func TestTheGateRefusesForbiddenObjectsWhereverTheyAre(t *testing.T) {
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
			g := NewGate(stamping, always, nil, nil)
			out, err := g.Run(bytes.NewBufferString(manifest))
			if err == nil || g.Refused == nil {
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
			g := NewGate(stamping, always, nil, nil)
			hooks := []*helm.Hook{
				{Path: "web/templates/a.yaml", Manifest: configMap, Events: []helm.HookEvent{event}},
				{Path: "web/templates/b.yaml", Manifest: clusterRole, Events: []helm.HookEvent{event}},
			}
			if err := g.PassHooks(hooks); err == nil || g.Refused == nil {
				t.Error("a hook with a ClusterRole was let through")
			}
		})
	}
}

// Whatever is applied is read from the text that left the gate: all of it must have been checked and stamped.
func TestNothingPassesTheGateUnchecked(t *testing.T) {
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: root}}"
	const list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
	aimed := &kustomize.Selector{Kind: "ConfigMap"}
	tests := map[string]struct {
		manifest string
		patch    kustomize.Patch
	}{
		"items by a JSON patch": {configMap, kustomize.Patch{Patch: "- {op: add, path: /items, value: [" + role + "]}", Target: aimed}},
		"items by a merge":      {configMap, kustomize.Patch{Patch: "items: [" + role + "]", Target: aimed}},
		"return in the source":  {manifest: "# Source: a.yaml\ritems: [" + role + "]\n" + list},
		"NEL in the source":     {manifest: "# Source: a.yaml\u0085items: [" + role + "]\n" + list},
		"separator in it":       {manifest: "# Source: a.yaml\u2028items: [" + role + "]\n" + list},
		"paragraph in it":       {manifest: "# Source: a.yaml\u2029items: [" + role + "]\n" + list},
		"a List without items":  {manifest: "apiVersion: example.com/v1\nkind: List\nmetadata: {name: a}\n"},
		"a quoted merge key":    {manifest: configMap + "\"<<\": {items: [" + role + "]}\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewGate(allStamped, always, nil, nil)
			if test.patch.Patch != "" {
				g.renderers = patches(test.patch)
			}
			hook := &helm.Hook{Manifest: test.manifest}
			hookErr := g.PassHooks([]*helm.Hook{hook})
			passed, manifestErr := g.Pass(test.manifest)
			for place, out := range map[string]string{"hook": hook.Manifest, "manifest": passed} {
				if place == "hook" && hookErr != nil || place == "manifest" && manifestErr != nil {
					continue
				}
				docs, err := Parse(out)
				if err != nil {
					t.Errorf("%s: %v", place, err)
				}
				for _, u := range Objects(docs) {
					if u.GetLabels()["owner"] != "shop" {
						t.Errorf("%s: %s/%s was not checked:\n%s", place, u.GetKind(), u.GetName(), out)
					}
				}
			}
		})
	}
}

// allStamped is an admission that reads Lists as delivery/policy does.
func allStamped(objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		members, err := objectset.Expand(u)
		if err != nil {
			return err
		}
		if err := stamping(members); err != nil {
			return err
		}
	}
	return nil
}

// What admission leaves in an object must be what the text says.
func TestManifestsThatParsersReadDifferentlyAreRefused(t *testing.T) {
	adding := func(objects []*unstructured.Unstructured) error {
		objects[0].Object["items"] = []any{map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		return nil
	}
	for name, pass := range map[string]func(*Gate) error{
		"manifest": func(g *Gate) error { _, err := g.Pass(configMap); return err },
		"hook":     func(g *Gate) error { return g.PassHooks([]*helm.Hook{{Manifest: configMap}}) },
	} {
		if err := pass(NewGate(adding, always, nil, nil)); !errors.Is(err, fault.ErrRender) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGateStampsHooks(t *testing.T) {
	g := NewGate(stamping, always, nil, nil)
	hook := &helm.Hook{Path: "web/templates/a.yaml", Manifest: "# why\n" + configMap}
	if err := g.PassHooks([]*helm.Hook{hook}); err != nil {
		t.Fatal(err)
	}
	if want := "owner: shop"; !strings.Contains(hook.Manifest, want) {
		t.Errorf("not stamped: %q, want %q in it", hook.Manifest, want)
	}
}

func TestDocumentsThatAreNoObjectsAreRefused(t *testing.T) {
	secret := "hunter22"
	tests := map[string]string{
		"text":           secret,
		"list":           "- " + secret,
		"no kind":        "apiVersion: v1\ndata: " + secret,
		"no apiVersion":  "kind: Secret\ndata: " + secret,
		"items no list":  "apiVersion: v1\nkind: List\nitems: " + secret,
		"item no object": "apiVersion: v1\nkind: List\nitems: [" + secret + "]",
		// An item is of the kind of its list if it says neither. Helm would send one that says half of it as what it says.
		"item no kind":       "apiVersion: v1\nkind: ConfigMapList\nitems: [{apiVersion: rbac.authorization.k8s.io/v1, data: " + secret + "}]",
		"item no apiVersion": "apiVersion: v1\nkind: ConfigMapList\nitems: [{kind: Secret, data: " + secret + "}]",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("---\n# Source: web/templates/x.yaml\n" + text + "\n")
			if err == nil || !strings.HasPrefix(err.Error(), "web/templates/x.yaml: ") || strings.Contains(err.Error(), secret) {
				t.Errorf("got %v, want an error that names the template and shows no content", err)
			}
		})
	}
}

func TestAnErrorIsClassifiedByWhenItOccurred(t *testing.T) {
	plain := errors.New("password hunter22 is bad")
	tests := map[string]struct {
		gate   Gate
		err    error
		render bool
		denied bool
	}{
		"before rendering ended": {Gate{}, plain, true, false},
		"storage":                {Gate{Storage: plain}, plain, false, false},
		"a lookup":               {Gate{}, fmt.Errorf("%w: password hunter22", fault.ErrLookup), false, false},
		"after rendering":        {Gate{Rendered: true}, plain, false, false},
		"refused":                {Gate{Rendered: true, Refused: plain}, errors.New("wrapped"), false, true},
		"refused elsewhere":      {Gate{}, fmt.Errorf("installing: %w", &fault.NotAllowed{Err: plain}), false, true},
		"known as rendering":     {Gate{Rendered: true}, fault.Render(plain), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.gate.Classify(test.err, mask.Of([]string{"hunter22"}))
			if errors.Is(got, fault.ErrRender) != test.render || errors.As(got, new(*fault.NotAllowed)) != test.denied {
				t.Errorf("got %#v", got)
			}
			if strings.Contains(got.Error(), "hunter22") {
				t.Errorf("shows a secret: %v", got)
			}
		})
	}
}

// Helm puts words of its own before what the gate says.
func TestClassifyDropsTheTextThatHelmAdds(t *testing.T) {
	g := NewGate(stamping, always, nil, nil)
	_, err := g.Run(bytes.NewBufferString("---\n# Source: web/templates/a.yaml\n- text\n"))
	got := g.Classify(fmt.Errorf("error while running post render on files: %w", err), mask.Of(nil))
	const want = "rendering the chart: web/templates/a.yaml: it is not an object"
	if !errors.Is(got, fault.ErrRender) || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestGateRefusesAliasesThatBlowUp(t *testing.T) {
	g := NewGate(anything, always, nil, nil)
	_, err := g.Run(bytes.NewBufferString("---\n# Source: web/templates/a.yaml\n" + configMap + aliasBomb))
	if got := g.Classify(err, mask.Of(nil)); !errors.Is(got, fault.ErrTooLarge) || !errors.Is(got, fault.ErrRender) || !strings.Contains(got.Error(), "web/templates/a.yaml: ") {
		t.Errorf("manifest: %v", got)
	}
	if err := g.PassHooks([]*helm.Hook{{Manifest: configMap + aliasBomb}}); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
		t.Errorf("hook: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("---\n# Source: a\n" + configMap + "---\n" + clusterRole)
	f.Add("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n")
	f.Add("items: {}\n---\n[]\n---\nnull\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs, err := Parse(text)
		if err != nil {
			return
		}
		out, err := Write(docs)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if diff := cmp.Diff(Objects(docs), Objects(again)); diff != "" {
			t.Errorf("what is applied differs from what was checked: %s", diff)
		}
		for _, u := range Objects(again) {
			if _, isList := u.Object["items"]; isList || u.GetKind() == "" || u.GetKind() == "List" {
				t.Errorf("an object could hide others: %v", u.Object)
			}
		}
	})
}

func TestAnErrorOfAdmissionIsNoRefusal(t *testing.T) {
	tests := map[string]struct {
		refused     func(error) bool
		err         error
		environment bool
	}{
		"no refusal": {func(error) bool { return false }, errors.New("kinds are not known yet"), true},
		"a refusal":  {always, &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewGate(func([]*unstructured.Unstructured) error { return test.err }, test.refused, nil, nil)
			_, err := g.Run(bytes.NewBufferString(configMap))
			err = g.Classify(err, mask.Of(nil))
			if refused := errors.As(err, new(*fault.NotAllowed)); refused == test.environment || (g.Unjudged != nil) != test.environment {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOnlyHooksMayLeaveTheirNameToTheAPIServer, because nothing refers to them later.
func TestOnlyHooksMayLeaveTheirNameToTheAPIServer(t *testing.T) {
	const generated = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n"
	g := NewGate(stamping, always, nil, nil)
	if out, err := g.Pass(generated); err == nil || !strings.Contains(err.Error(), "a ConfigMap has no name") {
		t.Errorf("a manifest without a name passes: %s, %v", out, err)
	}
	if err := NewGate(stamping, always, nil, nil).PassHooks([]*helm.Hook{{Path: "web/templates/a.yaml", Manifest: generated}}); err != nil {
		t.Errorf("a hook whose name is generated: %v", err)
	}
	if err := NewGate(stamping, always, nil, nil).PassHooks([]*helm.Hook{{Path: "web/templates/a.yaml", Manifest: strings.Split(generated, "metadata")[0]}}); err == nil {
		t.Error("a hook without any name passes")
	}
}

// TestAnObjectThatCouldNotBeCheckedIsNoErrorOfTheChart: the same chart is tried again.
func TestAnObjectThatCouldNotBeCheckedIsNoErrorOfTheChart(t *testing.T) {
	g := NewGate(func([]*unstructured.Unstructured) error { return errors.New("the API server at hunter2 is away") }, func(error) bool { return false }, nil, nil)
	_, err := g.Pass(configMap)
	got := g.Classify(fmt.Errorf("upgrade failed: %w", fault.Render(err)), mask.Of([]string{"hunter2"}))
	if got == nil || errors.Is(got, fault.ErrRender) || !strings.Contains(got.Error(), "checking whether the objects are allowed: the API server at ") || strings.Contains(got.Error(), "hunter2") {
		t.Errorf("got %v", got)
	}
}

func TestAllItemsOfAListAreObjects(t *testing.T) {
	docs, err := Parse("# Source: a.yaml\napiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}}, {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {name: b}}]}, {metadata: {name: c}}]\n")
	var got []string
	for _, u := range Objects(docs) {
		got = append(got, u.GetKind()+"/"+u.GetName())
	}
	if diff := cmp.Diff([]string{"ConfigMap/a", "Secret/b", "ConfigMap/c"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
