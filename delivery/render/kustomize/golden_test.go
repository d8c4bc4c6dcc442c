package kustomize_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// onDisk builds a folder as `kustomize build --load-restrictor LoadRestrictionsNone` does: the same version, on a real
// disk, through none of this package. It returns the objects as stream does.
func onDisk(t *testing.T, files fstest.MapFS, folder string) string {
	t.Helper()
	root := t.TempDir()
	for name, file := range files {
		if file.Mode&fs.ModeSymlink != 0 {
			continue
		}
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone
	built, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return string(rendering.Stream(t, objects))
}

const (
	serviceManifest = "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {selector: {app: shop}, ports: [{port: 80}]}\n"
	hostManifest    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: host}\ndata: {host: shop.example.com, image: other}\n"
	twoNamespaces   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: one}\ndata: {a: \"1\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: two}\ndata: {a: \"2\"}\n"
	crdManifest     = `{"example.com/v1.Shop": {"Schema": {"properties": {"spec": {"properties": {"config": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "ConfigMap", "x-kubernetes-object-ref-name-key": "name"}}}}}}}`
	shopObject      = "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: main}\nspec: {config: {name: host}}\n"
)

// TestObjectsEqualThoseOfKustomize: what is built is what kustomize builds, to the order of the objects.
func TestObjectsEqualThoseOfKustomize(t *testing.T) {
	files := map[string]string{
		"app/service.yaml": serviceManifest, "app/host.yaml": hostManifest, "app/two.yaml": twoNamespaces, "app/shop.yaml": shopObject,
		"app/crd.json": crdManifest, "app/a.env": "A=1\nB=two words\n# no\n", "app/logo.bin": "\x00\x01\xff", "app/note.txt": "one\ntwo\n",
		"app/replicas.yaml":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec:\n  template:\n    spec:\n      containers:\n      - name: shop\n        ports: [{containerPort: 8080, name: http}]\n      - {name: side, image: side:1}\n",
		"app/delete.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: host}\n$patch: delete\n",
		"app/replacement.yaml":           "source: {kind: ConfigMap, name: host, fieldPath: data.host}\ntargets:\n- select: {kind: Service}\n  fieldPaths: [metadata.annotations.host]\n  options: {create: true}\n",
		"app/fields.yaml":                "namePrefix:\n- {path: spec/config/name, kind: Shop}\n",
		"parts/label/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: label}, includeSelectors: true}]\n",
		"nested/kustomization.yaml":      "resources: [../stage]\nnamePrefix: n-\nreplicas: [{name: shop, count: 3}]\n",
	}
	const base = "resources: [../base, service.yaml, host.yaml]\n"
	tests := map[string]string{
		"prefix, suffix":             base + "namePrefix: a-\nnameSuffix: -z\n",
		"namespace":                  base + "namespace: kubeop-acme-web\n",
		"labels":                     base + "labels: [{pairs: {a: b}, includeSelectors: true}, {pairs: {c: d}, includeTemplates: true}, {pairs: {e: f}}]\n",
		"common labels, annotations": base + "commonLabels: {a: b}\ncommonAnnotations: {c: d}\n",
		"images":                     base + "images: [{name: shop, newName: example.com/shop, digest: sha256:24a0c4b4a4c0eb97a1aabb8e29f18e917d05abfe1b7a7c07857230879ce7d3d3}]\n",
		"replicas":                   base + "replicas: [{name: shop, count: 5}]\n",
		"strategic patch":            base + "patches: [{path: replicas.yaml}]\n",
		"deleting patch":             base + "patches: [{path: delete.yaml}]\n",
		"patch of many":              base + "patches: [{target: {kind: Deployment|Service, name: 'sh.*'}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"a\": \"b\"}}]'}]\n",
		"patch by label":             base + "labels: [{pairs: {a: b}}]\npatches: [{target: {labelSelector: 'a=b'}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"x\": \"y\"}}]'}]\n",
		"older patches":              base + "patchesStrategicMerge: [replicas.yaml]\npatchesJson6902: [{target: {version: v1, kind: Service, name: shop}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/ports/0/port\", \"value\": 81}]'}]\n",
		"config maps":                base + "configMapGenerator: [{name: a, literals: [x=y], files: [note.txt, l=logo.bin], envs: [a.env]}, {name: settings, behavior: merge, literals: [MORE=1]}]\n",
		"replaced config map":        base + "configMapGenerator: [{name: settings, behavior: replace, literals: [ONLY=1]}]\n",
		"secrets":                    base + "secretGenerator: [{name: s, type: Opaque, literals: [password=hunter22], files: [logo.bin]}]\n",
		"generator options":          base + "generatorOptions: {disableNameSuffixHash: true, labels: {a: b}, immutable: true}\nconfigMapGenerator: [{name: a, literals: [x=y]}]\n",
		"replacements":               base + "replacements: [{path: replacement.yaml}, {source: {kind: ConfigMap, name: host, fieldPath: data.image}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=shop].image'], options: {delimiter: ':', index: 0}}]}]\n",
		"component":                  base + "components: [../parts/label, ../parts/debug]\n",
		"nested bases":               "resources: [../nested, service.yaml]\nnameSuffix: -x\n",
		"equal names":                "resources: [two.yaml]\nnamePrefix: p-\n",
		"crds":                       "resources: [shop.yaml, host.yaml]\ncrds: [crd.json]\nnamePrefix: p-\n",
		"configurations":             "resources: [shop.yaml, host.yaml]\nconfigurations: [fields.yaml]\nnamePrefix: p-\n",
		"vars":                       "resources: [service.yaml, host.yaml, ../base]\nvars: [{name: SHOP, objref: {apiVersion: v1, kind: Service, name: shop}}]\npatches: [{target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/spec/template/spec/containers/0/args\", \"value\": [\"$(SHOP)\"]}]'}]\n",
		"sort order":                 "resources: [service.yaml, ../base, host.yaml]\nsortOptions: {order: legacy}\n",
		"build metadata":             base + "buildMetadata: [managedByLabel]\n",
	}
	for name, kustomization := range tests {
		t.Run(name, func(t *testing.T) {
			all := with(files)
			all["app/kustomization.yaml"] = &fstest.MapFile{Data: []byte(kustomization)}
			got, err := folder(all, "app")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(onDisk(t, all, "app"), string(rendering.Stream(t, got))); diff != "" {
				t.Errorf("-kustomize +kubeop:\n%s", diff)
			}
		})
	}
}
