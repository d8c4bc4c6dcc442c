package kustomize_test

import (
	"strings"
	"testing"
)

const labeller = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {team: shop}\nfieldSpecs: [{path: metadata/labels, create: true}]\n"

func TestLabelsAndAnnotationsAreTransformed(t *testing.T) {
	files := with(map[string]string{
		"app/kustomization.yaml": "resources: [../base]\ntransformers: [all.yaml]\n",
		"app/all.yaml": labeller + "---\napiVersion: builtin\nkind: AnnotationsTransformer\nmetadata: {name: a}\n" +
			"annotations: {docs: here}\nfieldSpecs: [{path: metadata/annotations, create: true}]\n",
	})
	objects, err := folder(files, "app")
	if err != nil || len(objects) == 0 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for _, o := range objects {
		if o.GetLabels()["team"] != "shop" || o.GetAnnotations()["docs"] != "here" {
			t.Errorf("%s has labels %v and annotations %v", o.GetName(), o.GetLabels(), o.GetAnnotations())
		}
	}
}

func TestOtherTransformersAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ entry, file, want string }{
		"another built-in one":      {"x.yaml", strings.ReplaceAll(labeller, "LabelTransformer", "PatchTransformer"), "it holds a PatchTransformer of apiVersion builtin"},
		"another beside it":         {"x.yaml", labeller + "---\napiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\n", "it holds a X of apiVersion example.com/v1"},
		"another group's":           {"x.yaml", strings.ReplaceAll(labeller, "builtin", "example.com/builtin"), "it holds a LabelTransformer of apiVersion example.com/builtin"},
		"a program":                 {"x.yaml", strings.ReplaceAll(labeller, "{name: l}", "{name: l, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/false}'}}"), "it has annotations itself"},
		"aliases":                   {"x.yaml", strings.ReplaceAll(labeller, "{team: shop}", "{team: &a shop, other: *a}"), "it has YAML aliases"},
		"many fields":               {"x.yaml", strings.ReplaceAll(labeller, "[{path", "["+strings.Repeat("{path: a}, ", 100)+"{path"), "it has more than 100 fieldSpecs"},
		"an inline one":             {"'" + strings.ReplaceAll("{apiVersion: builtin, kind: LabelTransformer, metadata: {name: l}}", "'", "''") + "'", "", "not in the repository"},
		"a folder":                  {"../base", "", "base: is a folder, not a file"},
		"outside":                   {"../../x.yaml", "", "it is not in the repository"},
		"a remote one":              {"https://example.com/x.yaml", "", "it is not in the repository"},
		"a file without any":        {"x.yaml", "# nothing\n", "it holds no objects"},
		"what kustomize can't read": {"x.yaml", "a: [", "it holds no objects"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := folder(with(map[string]string{"app/kustomization.yaml": "resources: [../base]\ntransformers: [" + c.entry + "]\n", "app/x.yaml": c.file}), "app")
			if err == nil || !strings.HasPrefix(err.Error(), "app/kustomization.yaml: transformers is refused: ") || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestTransformersThatWriteTooMuchAreRefused(t *testing.T) {
	var objects strings.Builder
	for range 900 {
		objects.WriteString("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a, name: a" + strings.Repeat("b", objects.Len()%7) + "}\n")
	}
	file := strings.ReplaceAll(labeller, "{team: shop}", "{team: '"+strings.Repeat("x", 100_000)+"'}")
	_, err := folder(with(map[string]string{"app/kustomization.yaml": "resources: [many.yaml]\ntransformers: [x.yaml]\n", "app/x.yaml": file, "app/many.yaml": objects.String()}), "app")
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
}
