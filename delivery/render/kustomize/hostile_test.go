package kustomize_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// maxHostileHeap is how far the heap may grow while a hostile folder is refused.
const maxHostileHeap = 192 << 20

// chain is replacements each of which takes what the one before it made.
func chain(n int) string {
	var out strings.Builder
	out.WriteString("resources: [a.yaml]\nreplacements:\n")
	for i := range n {
		fmt.Fprintf(&out, "- source: {kind: ConfigMap, name: a, fieldPath: data.k%d}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: [data.k%d]\n    options: {create: true, delimiter: '-', index: -1}\n", i%2, (i+1)%2)
	}
	return out.String()
}

// manyFiles are files with a letter each.
func manyFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("app/%d/%d.txt", i%100, i)] = "x"
	}
	return files
}

func manyObjects(n int, data string) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(rendering.ConfigMap(fmt.Sprintf("o%d", i)) + "data: {" + data + "}\n---\n")
	}
	return out.String()
}

// TestHostileFoldersAreRefusedInBoundedMemory: each is refused by a limit that the message names, and the heap stays flat.
func TestHostileFoldersAreRefusedInBoundedMemory(t *testing.T) {
	const mebibyte = 1 << 20
	text := strings.Repeat("x", 900_000)
	config := rendering.ConfigMap("a") + "data: {k0: " + text[:100_000] + ", k1: y}\n"
	copying := `[{"op": "add", "path": "/data/z", "value": {}}` + strings.Repeat(`, {"op": "copy", "from": "/data", "path": "/data/z/z"}`, 40) + `]`
	wide := v1alpha1.Build{Patches: []kustomize.Patch{{Patch: `[{"op": "add", "path": "/data/big", "value": "` + text + `"}]`, Target: &kustomize.Selector{Kind: "ConfigMap"}}}}
	tests := map[string]struct {
		files map[string]string
		with  v1alpha1.Build
		want  string
	}{
		"replacements that double":      {map[string]string{"app/kustomization.yaml": chain(40), "app/a.yaml": config}, v1alpha1.Build{}, "replacements may make more than 67108864 bytes"},
		"replacements in files":         {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nreplacements: [" + strings.Repeat("{path: r.yaml}, ", 40) + "]\n", "app/a.yaml": config, "app/r.yaml": "source: {kind: ConfigMap, fieldPath: data}\ntargets: [{select: {kind: ConfigMap}, fieldPaths: [data.k0], options: {create: true}}]\n"}, v1alpha1.Build{}, "replacements may make more than 67108864 bytes"},
		"a list of them in files":       {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nreplacements: [{path: r.yaml}]\n", "app/a.yaml": config, "app/r.yaml": strings.Repeat("- source: {kind: ConfigMap, fieldPath: data}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.k0], options: {create: true}}]\n", 40)}, v1alpha1.Build{}, "replacements may make more than 67108864 bytes"},
		"one text into many objects":    {map[string]string{"app/kustomization.yaml": "resources: [a.yaml, b.yaml]\nreplacements: [{source: {kind: Secret, name: a, fieldPath: data.k}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.z], options: {create: true}}]}]\n", "app/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: " + text + "}\n", "app/b.yaml": manyObjects(900, "a: b")}, v1alpha1.Build{}, "replacements may make more than 67108864 bytes"},
		"a value put everywhere":        {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nreplacements: [{sourceValue: " + text + ", targets: [{select: {kind: ConfigMap}, fieldPaths: [data.z], options: {create: true}}]}]\n", "app/a.yaml": manyObjects(900, "a: b")}, v1alpha1.Build{}, "may make more than 67108864 bytes"},
		"variables":                     {map[string]string{"app/kustomization.yaml": "resources: [a.yaml, b.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldpath: data.k0}}]\n", "app/a.yaml": rendering.ConfigMap("a") + "data: {k0: " + text + "}\n", "app/b.yaml": rendering.ConfigMap("b") + "data: {k: '" + strings.Repeat("$(A)", 200_000) + "'}\n"}, v1alpha1.Build{}, "vars may make more than 67108864 bytes"},
		"variables in escapes":          {map[string]string{"app/kustomization.yaml": "resources: [a.yaml, b.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldpath: data.k0}}]\n", "app/a.yaml": rendering.ConfigMap("a") + "data: {k0: " + text + "}\n", "app/b.yaml": rendering.ConfigMap("b") + "data: {k: \"" + strings.Repeat(`\u0024(A)`, 90_000) + "\"}\n"}, v1alpha1.Build{}, "vars may make more than 67108864 bytes"},
		"variables in aliases":          {map[string]string{"app/kustomization.yaml": "resources: [a.yaml, b.yaml]\nvars: [{name: A, objref: {apiVersion: v1, kind: ConfigMap, name: a}, fieldref: {fieldpath: data.k0}}]\n", "app/a.yaml": rendering.ConfigMap("a") + "data: {k0: " + text + "}\n", "app/b.yaml": rendering.ConfigMap("b") + "data: {k: &a '" + strings.Repeat("$(A)", 50) + "'" + aliased("a", 100) + "}\n"}, v1alpha1.Build{}, "vars may make more than 67108864 bytes"},
		"a patch that copies":           {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, path: p.json}]\n", "app/a.yaml": config, "app/p.json": copying}, v1alpha1.Build{}, "operations copy of patches may make more than 67108864 bytes"},
		"a large patch of many objects": {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, path: p.yaml}]\n", "app/a.yaml": manyObjects(900, "a: b"), "app/p.yaml": "- {op: add, path: /data/z, value: " + text + "}\n"}, v1alpha1.Build{}, "patches, labels and annotations may make more than 67108864 bytes"},
		"one of the spec":               {map[string]string{"app/a.yaml": manyObjects(900, "a: b")}, wide, "patches, labels and annotations may make more than 67108864 bytes"},
		"large annotations":             {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {a: " + text + "}\n", "app/a.yaml": manyObjects(900, "a: b")}, v1alpha1.Build{}, "may make more than 67108864 bytes"},
		"too many files":                {manyFiles(100_000), v1alpha1.Build{}, "app: holds more than 20000 files and folders"},
		"too many files and a patch":    {manyFiles(100_000), wide, "app: holds more than 20000 files and folders"},
		"a list of a million":           {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/a.yaml": rendering.ConfigMap("a") + "data: {a: [" + strings.Repeat("a,", mebibyte/2-100) + "]}"}, v1alpha1.Build{}, "a kustomize build may read 150000 values"},
		"too deep":                      {map[string]string{"app/a.yaml": rendering.ConfigMap("a") + "data: {a: " + strings.Repeat("[", 200_000) + "}"}, v1alpha1.Build{}, "exceeded max depth of 10000"},
		"too deep JSON":                 {map[string]string{"app/a.json": strings.Repeat(`{"a":`, 80_000)}, v1alpha1.Build{}, "app/a.json:1: "},
		"too deep for kustomize":        {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/a.yaml": rendering.ConfigMap("a") + "data: {a: " + strings.Repeat("[", 90_000) + "}"}, v1alpha1.Build{}, "exceeded max depth"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			maps.Copy(files, rendering.Repository(tc.files))
			var err error
			began := time.Now()
			grew := sources.PeakHeap(t, func() { _, err = built(files, "app", &tc.with) })
			t.Logf("%s, heap +%d MiB: %.150v", time.Since(began).Round(time.Millisecond), grew>>20, err)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %.500v", err)
			}
			if grew > maxHostileHeap {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
		})
	}
}

// TestLargeOrdinaryFoldersAreBuilt: what people write is far from the limits.
func TestLargeOrdinaryFoldersAreBuilt(t *testing.T) {
	var replacements strings.Builder
	for i := range 12 {
		fmt.Fprintf(&replacements, "- source: {kind: ConfigMap, name: host, fieldPath: data.host}\n  targets:\n  - {select: {kind: Deployment}, fieldPaths: [metadata.annotations.a%d], options: {create: true}}\n  - {select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.*.image']}\n", i)
	}
	files := map[string]string{
		"app/kustomization.yaml": "resources: [host.yaml, ../base, all.yaml]\nreplacements:\n" + replacements.String(), "app/host.yaml": hostManifest,
		"app/all.yaml": manyObjects(300, "a: "+strings.Repeat("x", 1000)),
	}
	if objects, err := folder(with(files), "app"); err != nil || len(objects) != 303 {
		t.Errorf("%d objects: %v", len(objects), err)
	}
}

// aliased are more keys of a mapping, with an anchor's value each.
func aliased(anchor string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, ", a%d: *%s", i, anchor)
	}
	return out.String()
}
