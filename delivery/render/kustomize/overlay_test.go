package kustomize_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

const (
	replicasPatch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {replicas: 7}\n"
	portPatch     = "- {op: add, path: /metadata/annotations, value: {port: \"80\"}}\n"
	brokenPatch   = "- {op: remove, path: /spec/nothing}\n"
)

func deployments(name string) *kustomize.Selector {
	return &kustomize.Selector{Kind: "Deployment", Name: name}
}

// TestBuildWithChangesAFolderAsKustomizeDoes compares with kustomize itself, run on a disk over the same folder.
func TestBuildWithChangesAFolderAsKustomizeDoes(t *testing.T) {
	plain := map[string]string{"plain/b/deployment.yaml": deploymentManifest, "plain/a.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}`}
	all := v1alpha1.Build{
		Patches:    []kustomize.Patch{{Patch: replicasPatch}, {Patch: portPatch, Target: deployments("sh.*")}},
		Images:     []kustomize.Image{{Name: "shop", NewName: "example.com/shop", NewTag: "9"}},
		Components: []string{"../parts/debug"},
	}
	const patchesText = "patches:\n- patch: |\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: shop}\n    spec: {replicas: 7}\n" +
		"- patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"port\": \"80\"}}]'\n  target: {kind: Deployment, name: sh.*}\n"
	const images = "images: [{name: shop, newName: example.com/shop, newTag: \"9\"}]\n"
	digest := "sha256:" + strings.Repeat("0a", 32)
	tests := map[string]struct {
		path    string
		with    v1alpha1.Build
		overlay string
	}{
		"a kustomization":        {"base", all, "resources: [../base]\ncomponents: [../parts/debug]\n" + patchesText + images},
		"one that renames":       {"stage", v1alpha1.Build{Patches: all.Patches}, "resources: [../stage]\n" + patchesText},
		"plain manifests":        {"plain", v1alpha1.Build{Patches: all.Patches, Images: all.Images}, "resources: [../plain/a.json, ../plain/b/deployment.yaml]\n" + patchesText + images},
		"an image by digest":     {"base", v1alpha1.Build{Images: []kustomize.Image{{Name: "shop", Digest: digest}}}, "resources: [../base]\nimages: [{name: shop, digest: \"" + digest + "\"}]\n"},
		"a tag and a digest":     {"base", v1alpha1.Build{Images: []kustomize.Image{{Name: "shop", NewTag: "2", Digest: digest}}}, "resources: [../base]\nimages: [{name: shop, newTag: \"2\", digest: \"" + digest + "\"}]\n"},
		"components alone":       {"base", v1alpha1.Build{Components: all.Components}, "resources: [../base]\ncomponents: [../parts/debug]\n"},
		"a patch that fits none": {"base", v1alpha1.Build{Patches: []kustomize.Patch{{Patch: portPatch, Target: deployments("other")}}}, "resources: [../base]\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := built(with(plain), tc.path, &tc.with)
			if err != nil {
				t.Fatal(err)
			}
			files := with(plain)
			files["overlay/kustomization.yaml"] = rendering.Repository(map[string]string{"x": tc.overlay})["x"]
			want := onDisk(t, files, "overlay")
			if diff := cmp.Diff(want, string(rendering.Stream(t, got))); diff != "" {
				t.Errorf("-kustomize +kubeop:\n%s", diff)
			}
		})
	}
}

// TestAPatchIsAimedByEachFieldOfItsTarget: what differs in one of them is left alone, as by kustomize.
func TestAPatchIsAimedByEachFieldOfItsTarget(t *testing.T) {
	const manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, labels: {team: a}, annotations: {tier: b}}\n"
	var patches []kustomize.Patch
	for name, change := range map[string]func(*kustomize.Selector){
		"same": func(*kustomize.Selector) {}, "group": func(s *kustomize.Selector) { s.Group = "batch" }, "version": func(s *kustomize.Selector) { s.Version = "v2" },
		"kind": func(s *kustomize.Selector) { s.Kind = "Job" }, "name": func(s *kustomize.Selector) { s.Name = "api" }, "namespace": func(s *kustomize.Selector) { s.Namespace = "other" },
		"labels": func(s *kustomize.Selector) { s.LabelSelector = "team=b" }, "annotations": func(s *kustomize.Selector) { s.AnnotationSelector = "tier=c" },
	} {
		target := &kustomize.Selector{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: "shop", LabelSelector: "team=a", AnnotationSelector: "tier=b"}
		change(target)
		patches = append(patches, kustomize.Patch{Patch: `[{"op": "add", "path": "/metadata/annotations/` + name + `", "value": "here"}]`, Target: target})
	}
	written, err := json.Marshal(patches)
	if err != nil {
		t.Fatal(err)
	}
	aimed := map[string]string{"aimed/kustomization.yaml": "resources: [a.yaml]\n", "aimed/a.yaml": manifest}
	got, err := built(with(aimed), "aimed", &v1alpha1.Build{Patches: patches})
	if err != nil {
		t.Fatal(err)
	}
	files := with(aimed)
	files["overlay/kustomization.yaml"] = rendering.Repository(map[string]string{"x": "resources: [../aimed]\npatches: " + string(written) + "\n"})["x"]
	if diff := cmp.Diff(onDisk(t, files, "overlay"), string(rendering.Stream(t, got))); diff != "" {
		t.Errorf("-kustomize +kubeop:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"tier": "b", "same": "here"}, got[0].GetAnnotations()); diff != "" {
		t.Errorf("annotations: -want +got:\n%s", diff)
	}
}

func TestBuildWithExplainsWhatCannotBeApplied(t *testing.T) {
	aliases := "{a: &a " + strings.Repeat("x", 2000) + ", b: [" + strings.Repeat("*a, ", 1000) + "]}"
	patch := func(text string, target *kustomize.Selector) v1alpha1.Build {
		return v1alpha1.Build{Patches: []kustomize.Patch{{Patch: replicasPatch}, {Patch: text, Target: target}, {Patch: replicasPatch}}}
	}
	tests := map[string]struct {
		path string
		with v1alpha1.Build
		want []string
	}{
		"a patch of an object that is not there": {"base", patch(strings.Replace(replicasPatch, "shop", "cart", 1), nil), []string{"patches[1]: ", "Deployment", "cart"}},
		"a patch that does not apply":            {"base", patch(brokenPatch, deployments("shop")), []string{"patches[1] of Deployment/shop: ", "/spec/nothing"}},
		"a patch that is none":                   {"base", patch("- nothing", nil), []string{"patches[1]: "}},
		"a patch of aliases":                     {"base", patch(aliases, nil), []string{"patches[1]: YAML aliases stand for more than 1048576 bytes"}},
		"a component that is not there":          {"base", v1alpha1.Build{Components: []string{"../parts/none", "../shared"}}, []string{"components[0]: parts/none: not in the repository", "components[1]: ../shared: holds no kustomization.yaml"}},
		"a component that is a file":             {"broken", v1alpha1.Build{Components: []string{"kustomization.yml"}}, []string{"components[0]: reading broken/kustomization.yml: "}},
		"a component outside":                    {"base", v1alpha1.Build{Components: []string{"../../x"}}, []string{"components[0]: ../../x: outside the repository"}},
		"a remote component":                     {"base", v1alpha1.Build{Components: []string{"https://example.com/x"}}, []string{`components[0]: "https://example.com/x" is remote`}},
		"a folder with an error of its own":      {"broken", patch(brokenPatch, deployments("shop")), []string{"broken/kustomization.yml: resources: broken/a.yaml: not in the repository"}},
		"a folder like an address":               {"git::x", v1alpha1.Build{Components: []string{"../parts/debug"}}, nil},
	}
	more := map[string]string{"broken/kustomization.yml": "resources: [a.yaml]\n", "git::x/a.yaml": rendering.ConfigMap("settings")}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := built(with(more), tc.path, &tc.with)
			if tc.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "patches[") != strings.Contains(tc.want[0], "patches[") {
				t.Errorf("%v blames a patch that is not the cause", err)
			}
		})
	}
}

// TestCopyOperationsAreCountedHoweverTheyAreWritten has patches whose operations copy are not written as such: each would double what the one before made.
func TestCopyOperationsAreCountedHoweverTheyAreWritten(t *testing.T) {
	for name, op := range map[string]string{
		"plain": `"op": "copy"`, "an escaped value": `"op": "c\u006fpy"`, "an escaped key": `"\u006fp": "copy"`, "a tag": `op: !!str copy`,
		"an anchor": `op: &a copy`, "an alias": `x: &a copy, op: *a`, "an alias of the key": `x: &a op, *a : copy`, "an explicit key": `? op : copy`,
	} {
		t.Run(name, func(t *testing.T) {
			var ops []string
			for i := range 15 {
				ops = append(ops, fmt.Sprintf(`{%s, "from": "/data", "path": "/data/x%d"}`, op, i))
			}
			patch := "[" + strings.Join(ops, ",") + "]"
			config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + strings.Repeat("v", 5000) + "}\n"
			quoted, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			kustomization := "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: " + string(quoted) + "}]\n"
			_, inSpec := built(rendering.Repository(map[string]string{"a/a.yaml": config}), "a", &v1alpha1.Build{Patches: []kustomize.Patch{{Patch: patch, Target: &kustomize.Selector{Kind: "ConfigMap"}}}})
			_, inText := built(rendering.Repository(map[string]string{"a/a.yaml": config, "a/kustomization.yaml": kustomization}), "a", &v1alpha1.Build{})
			_, inFile := built(rendering.Repository(map[string]string{
				"a/a.yaml": config, "a/patch.yaml": patch, "a/kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, path: patch.yaml}]\n",
			}), "a", &v1alpha1.Build{})
			for _, err := range []error{inSpec, inText, inFile} {
				if !errors.Is(err, render.ErrTooLarge) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
