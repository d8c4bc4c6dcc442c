package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/mask"

	"github.com/fluxcd/pkg/apis/kustomize"
	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func anything([]*unstructured.Unstructured) error { return nil }

func patches(all ...kustomize.Patch) []v1alpha1.PostRenderer {
	return []v1alpha1.PostRenderer{{Kustomize: v1alpha1.KustomizePostRenderer{Patches: all}}}
}

const podDocument = "---\n# Source: web/templates/pod.yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: registry/app:1}]\n  initContainers: [{name: i, image: other:1}]\n  big: 12345678901234567\n"

func TestPostRenderersPatchTheirTargets(t *testing.T) {
	pods := &kustomize.Selector{Kind: "Pod", Name: "w.*"}
	tests := map[string]struct {
		renderers []v1alpha1.PostRenderer
		want      []string
	}{
		"strategic, by its own name": {
			patches(kustomize.Patch{Patch: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, tty: true}]}"}),
			[]string{"tty: true", "image: registry/app:1"},
		},
		"strategic, by target": {
			patches(kustomize.Patch{Patch: "kind: x\nmetadata: {name: ignored, labels: {a: b}}", Target: pods}),
			[]string{"a: b", "name: web", "kind: Pod"},
		},
		"JSON 6902": {
			patches(kustomize.Patch{Patch: "- {op: replace, path: /spec/containers/0/name, value: z}", Target: pods}),
			[]string{"name: z"},
		},
		"not selected": {
			patches(kustomize.Patch{Patch: "metadata: {labels: {a: b}}", Target: &kustomize.Selector{Kind: "Po"}}),
			[]string{"name: a"},
		},
		"images": {
			[]v1alpha1.PostRenderer{{Kustomize: v1alpha1.KustomizePostRenderer{Images: []kustomize.Image{{Name: "registry/app", NewName: "mirror/app", NewTag: "2"}}}}},
			[]string{"image: mirror/app:2", "image: other:1"},
		},
		"in order": {
			append(patches(kustomize.Patch{Patch: "metadata: {labels: {a: first}}", Target: pods}), patches(kustomize.Patch{Patch: "metadata: {labels: {a: second}}", Target: pods})...),
			[]string{"a: second"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewGate(anything, always, test.renderers, nil)
			out, err := g.Run(bytes.NewBufferString(podDocument))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range append(test.want, "# Source: web/templates/pod.yaml", "big: 12345678901234567") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in %s", want, out)
				}
			}
			if strings.Contains(out.String(), "config.kubernetes.io") {
				t.Errorf("kustomize left marks: %s", out)
			}
		})
	}
}

// TestImagesOfVolumesAreReplacedToo, which kustomize itself does not find.
func TestImagesOfVolumesAreReplacedToo(t *testing.T) {
	const spec = "{volumes: [{name: v, image: {reference: 'registry/app:1'}}], containers: [{name: a, image: 'registry/app:1'}]}"
	renderers := []v1alpha1.PostRenderer{{Kustomize: v1alpha1.KustomizePostRenderer{Images: []kustomize.Image{{Name: "registry/app", NewTag: "2", NewName: "mirror/app"}}}}}
	for _, object := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: " + spec + "\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: " + spec + "}}\n",
		"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec: {jobTemplate: {spec: {template: {spec: " + spec + "}}}}\n",
	} {
		out, err := NewGate(anything, always, renderers, nil).Run(bytes.NewBufferString(object))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(out.String(), ": mirror/app:2") != 2 || strings.Contains(out.String(), "registry/app") {
			t.Errorf("got\n%s", out)
		}
	}
}

// TestAPatchCannotMoveAnObject to another name, kind or namespace: the object would be another one, which nobody selected.
func TestAPatchCannotMoveAnObject(t *testing.T) {
	const document = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: %q}\nspec: {}\n"
	for _, namespace := range []string{"", "shop"} {
		for _, patch := range []string{
			"metadata: {namespace: other, labels: {a: b}}", "metadata: {name: other, labels: {a: b}}",
			"kind: ConfigMap\nmetadata: {labels: {a: b}}", "apiVersion: v2\nmetadata: {labels: {a: b}}",
		} {
			var got []*unstructured.Unstructured
			admit := func(all []*unstructured.Unstructured) error { got = all; return nil }
			g := NewGate(admit, always, patches(kustomize.Patch{Patch: patch, Target: &kustomize.Selector{Kind: "Pod"}}), nil)
			if _, err := g.Run(bytes.NewBufferString(fmt.Sprintf(document, namespace))); err != nil || len(got) != 1 {
				t.Fatalf("%s: %v, %d objects", patch, err, len(got))
			}
			o := got[0]
			is := []string{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName(), o.GetLabels()["a"]}
			if want := []string{"v1", "Pod", namespace, "web", "b"}; !slices.Equal(is, want) {
				t.Errorf("%s: got %q, want %q", patch, is, want)
			}
		}
	}
}

func TestPostRenderersThatCannotBe(t *testing.T) {
	tests := map[string]struct{ patch, want string }{
		"no YAML":           {"a: [", "postRenderers[1].kustomize.patches[0]: "},
		"empty":             {"# nothing", "the patch is empty"},
		"text":              {"hello", "neither a strategic merge patch nor a JSON 6902 patch"},
		"nameless":          {"metadata: {labels: {a: b}}", "needs the apiVersion, kind and metadata.name"},
		"6902, no target":   {"- {op: remove, path: /a}", "needs a target"},
		"aimed at nothing":  {"apiVersion: v1\nkind: Pod\nmetadata: {name: wbe}", "the chart has no Pod/wbe"},
		"alias bomb":        {aliasBomb, "YAML aliases stand for more than"},
		"6902, no patch":    {"- 1", "postRenderers[1].kustomize.patches[0]: it is no JSON 6902 patch"},
		"no target":         {"- {op: remove, path: /a}", "postRenderers[1].kustomize.patches[0]: target: "},
		"the object's name": {"", "postRenderers[1].kustomize.patches[0]: Pod/web: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := kustomize.Patch{Patch: test.patch}
			if name == "the object's name" {
				p = kustomize.Patch{Patch: "- {op: remove, path: /spec/nowhere}", Target: &kustomize.Selector{}}
			}
			switch name {
			case "6902, no patch":
				p.Target = &kustomize.Selector{}
			case "no target":
				p.Target = &kustomize.Selector{LabelSelector: "a in"}
			}
			g := NewGate(stamping, always, append([]v1alpha1.PostRenderer{{}}, patches(p)...), nil)
			_, err := g.Run(bytes.NewBufferString(podDocument))
			if err == nil {
				err = g.PassHooks(nil)
			}
			if !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want ErrRender with %q", err, test.want)
			}
		})
	}
}

// aliasBomb is 20 KiB of YAML and 2 MiB of JSON.
var aliasBomb = "a: &a " + strings.Repeat("x", 20<<10) + "\nb: [*a" + strings.Repeat(",*a", 100) + "]\n"

func TestPatchesAreBounded(t *testing.T) {
	maps := &kustomize.Selector{Kind: "ConfigMap"}
	big := func(size int) string { return configMap + "data: {a: " + strings.Repeat("x", size) + "}\n" }
	copies := func(patches, perPatch int) (all []kustomize.Patch) {
		for i := range patches {
			var text strings.Builder
			for j := range perPatch {
				fmt.Fprintf(&text, "- {op: copy, from: /data/a, path: /data/b%d-%d}\n", i, j)
			}
			all = append(all, kustomize.Patch{Patch: text.String(), Target: maps})
		}
		return all
	}
	step := "---\nmetadata: {labels: {a: b}}\n"
	image := []v1alpha1.PostRenderer{{Kustomize: v1alpha1.KustomizePostRenderer{Images: []kustomize.Image{{Name: "a", NewTag: "2"}}}}}
	tests := map[string]struct {
		manifest  string
		renderers []v1alpha1.PostRenderer
		tooLarge  bool
	}{
		"copies of four patches":      {big(1 << 20), patches(copies(4, 3)...), true},
		"copies in many objects":      {strings.Repeat("---\n"+big(1<<19), 10), patches(copies(1, 4)...), true},
		"one large object":            {big(1 << 20), patches(copies(1, 1)...), false},
		"documents":                   {configMap, patches(kustomize.Patch{Patch: strings.Repeat(step, maxSteps), Target: maps}), false},
		"too many documents":          {configMap, patches(kustomize.Patch{Patch: strings.Repeat(step, maxSteps+1), Target: maps}), true},
		"too many with the image":     {configMap, append(patches(kustomize.Patch{Patch: strings.Repeat(step, maxSteps), Target: maps}), image...), true},
		"too many in several patches": {configMap, patches(slices.Repeat([]kustomize.Patch{{Patch: strings.Repeat(step, 2), Target: maps}}, maxSteps/2+1)...), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewGate(anything, always, test.renderers, nil).Pass(test.manifest)
			if tooLarge := errors.Is(err, fault.ErrTooLarge) && errors.Is(err, fault.ErrRender); tooLarge != test.tooLarge || !tooLarge && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestCopiesThatAPatchRemovesAreBounded: their sum is what the patch needs in memory, whatever is left at its end.
func TestCopiesThatAPatchRemovesAreBounded(t *testing.T) {
	large := configMap + "data: {a: " + strings.Repeat("x", 1<<20) + "}\n"
	for copies, refused := range map[int]bool{3: false, 5: true} {
		text := strings.Repeat("- {op: copy, from: /data/a, path: /data/b}\n- {op: remove, path: /data/b}\n", copies)
		renderers := patches(kustomize.Patch{Patch: text, Target: &kustomize.Selector{Kind: "ConfigMap"}})
		_, err := NewGate(anything, always, renderers, nil).Pass(large)
		if tooMany := errors.Is(err, fault.ErrRender) && strings.Contains(err.Error(), "exceeding the limit 4194304"); tooMany != refused || !tooMany && err != nil {
			t.Errorf("%d copies: %v", copies, err)
		}
	}
}

func TestPostRenderersReachHooks(t *testing.T) {
	remove := kustomize.Patch{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n$patch: delete"}
	mark := kustomize.Patch{Patch: "metadata: {labels: {mine: x}}", Target: &kustomize.Selector{Kind: "ConfigMap"}}
	hooks := func() []*helm.Hook {
		return []*helm.Hook{
			{Path: "a.yaml", Manifest: configMap, Events: []helm.HookEvent{helm.HookTest}},
			{Path: "b.yaml", Manifest: strings.Replace(configMap, "name: a", "name: b", 1), Events: []helm.HookEvent{helm.HookTest}},
		}
	}
	g := NewGate(anything, always, patches(mark, remove), &v1alpha1.CommonMetadata{Annotations: map[string]string{"team": "shop"}})
	if _, err := g.Run(bytes.NewBufferString(podDocument)); err != nil {
		t.Fatal(err)
	}
	got := hooks()
	if err := g.PassHooks(got); err != nil {
		t.Fatal(err)
	}
	if len(got[0].Events) > 0 || got[0].Manifest != "" {
		t.Errorf("a hook that was patched away would run: %v", got[0])
	}
	if !strings.Contains(got[1].Manifest, "mine: x") || !strings.Contains(got[1].Manifest, "team: shop") || len(got[1].Events) == 0 {
		t.Errorf("the other hook: %s", got[1].Manifest)
	}
}

func TestCommonMetadataIsSetOnEveryObject(t *testing.T) {
	g := NewGate(anything, always, nil, &v1alpha1.CommonMetadata{Labels: map[string]string{"a": "over"}})
	out, err := g.Run(bytes.NewBufferString("---\n" + strings.Replace(configMap, "name: a", "name: a\n  labels: {a: chart, b: chart}", 1)))
	if err != nil || !strings.Contains(out.String(), "a: over\n    b: chart") || strings.Contains(out.String(), "annotations") {
		t.Errorf("got %v, %s", err, out)
	}
	g = NewGate(anything, always, nil, &v1alpha1.CommonMetadata{Annotations: map[string]string{"a": "b"}})
	if out, err := g.Run(bytes.NewBufferString("---\n" + configMap)); err != nil || !strings.Contains(out.String(), "annotations:\n    a: b") || strings.Contains(out.String(), "labels") {
		t.Errorf("got %v, %s", err, out)
	}
	for _, common := range []*v1alpha1.CommonMetadata{
		{Labels: map[string]string{v1alpha1.TenantLabel: "other"}},
		{Annotations: map[string]string{"x." + v1alpha1.Group + "/y": "z"}},
	} {
		g := NewGate(anything, always, nil, common)
		if _, err := g.Run(bytes.NewBufferString("---\n" + configMap)); err == nil || !errors.As(g.Classify(err, mask.Of(nil)), new(*fault.NotAllowed)) {
			t.Errorf("%v was let through: %v", common, err)
		}
	}
}

// TestAPatchWithoutATargetIsForOneObject: others have the same name, or are of the same kind.
func TestAPatchWithoutATargetIsForOneObject(t *testing.T) {
	object := func(version, kind, name string) string {
		return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	patch := kustomize.Patch{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {a: b}}\n"}
	manifest := object("v1", "Service", "web") + object("apps/v1", "Deployment", "api") + object("apps/v1", "Deployment", "web") + object("example.com/v1", "Deployment", "web")
	out, err := NewGate(anything, always, patches(patch), nil).Pass(manifest)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := Parse(out)
	var got []string
	for _, u := range Objects(docs) {
		if u.GetLabels()["a"] == "b" {
			got = append(got, u.GetAPIVersion()+" "+u.GetKind()+"/"+u.GetName())
		}
	}
	if err != nil || !slices.Equal(got, []string{"apps/v1 Deployment/web"}) {
		t.Errorf("patched are %q: %v", got, err)
	}
}
