package kustomize_test

import (
	"io/fs"
	"testing"

	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

func FuzzFolder(f *testing.F) {
	x := []byte(rendering.ConfigMap("x"))
	f.Add("a.yaml", []byte(rendering.ConfigMap("a")), x)
	f.Add("a.json", []byte(`{"apiVersion": "v1", "kind": "List", "items": [{}]}`), x)
	f.Add("a.json", []byte(`[{}]`), x)
	f.Add("kustomization.yaml", []byte("resources: [../base, x.yaml]\nnamePrefix: a-"), []byte(deploymentManifest))
	f.Add("kustomization.yaml", []byte("resources: [x.yaml]\nnamespace: n"), []byte(rendering.ConfigMap("x")+"data: &a {x: &b [1], y: *b, <<: {}}\n---\n"+rendering.ConfigMap("y")))
	f.Add("Kustomization", []byte("resources: [x.yaml]\npatches:\n- patch: '[{op: replace, path: /metadata/name, value: a}]'\n  target: {kind: ConfigMap}"), x)
	f.Add("kustomization.yml", []byte("resources: [../base]\npatches: [{path: x.yaml}]"), []byte(deploymentManifest))
	f.Add("kustomization.yml", []byte("configMapGenerator: [{name: a, literals: [x=y], files: [x.yaml]}]\nreplacements: [{source: {kind: ConfigMap}, targets: []}]"), x)
	f.Add("kustomization.yaml", []byte("vars: [{name: a, objref: {kind: ConfigMap, name: x, apiVersion: v1}}]\nresources: [x.yaml]\ncommonLabels: {a: b}"), x)
	f.Fuzz(func(t *testing.T, name string, data, resource []byte) {
		if !fs.ValidPath(name) {
			t.Skip("fstest.MapFS has no such names")
		}
		files := with(map[string]string{"app/x.yaml": string(resource), "app/" + name: string(data)})
		objects, err := folder(files, "app")
		if err == nil {
			rendering.Whole(t, objects)
		}
	})
}
