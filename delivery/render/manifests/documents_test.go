package manifests

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// parse reads the manifests of one file.
func parse(text string) ([]*unstructured.Unstructured, error) {
	return Folder(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, ".", budget.App{})
}

func TestDocumentsOfAFileBecomeObjects(t *testing.T) {
	const a, b = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`
	tests := map[string]struct {
		in   string
		want []string
	}{
		"nothing":                       {"", nil},
		"only markers and comments":     {"---\n# a\n--- # b\n...\n%YAML 1.2\n---\n\n", nil},
		"one":                           {a, []string{"ConfigMap/a"}},
		"two":                           {a + "\n---\n" + b, []string{"ConfigMap/a", "ConfigMap/b"}},
		"on the marker's line":          {"--- " + a + "\n--- " + b, []string{"ConfigMap/a", "ConfigMap/b"}},
		"carriage returns":              {a + "\r\n---\r\n" + b + "\r\n", []string{"ConfigMap/a", "ConfigMap/b"}},
		"byte order mark":               {"\ufeff" + a, []string{"ConfigMap/a"}},
		"after the end of a document":   {a + "\n...\n" + b, []string{"ConfigMap/a", "ConfigMap/b"}},
		"a null document":               {"null\n---\n" + a, []string{"ConfigMap/a"}},
		"a marker inside text":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: |\n    ---\n    y\n", []string{"ConfigMap/a"}},
		"not a marker":                  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---x: y\n", []string{"ConfigMap/a"}},
		"List":                          {"{apiVersion: v1, kind: List, items: [" + a + ", " + b + "]}", []string{"ConfigMap/a", "ConfigMap/b"}},
		"List in a List":                {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [" + a + "]}]}", []string{"ConfigMap/a"}},
		"typed List, bare items":        {"{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}]}", []string{"ConfigMap/a"}},
		"empty Lists":                   {"{apiVersion: v1, kind: List}\n---\n{apiVersion: v1, kind: List, items: null}", nil},
		"a kind that only ends in List": {"{apiVersion: example.com/v1, kind: AccessList, metadata: {name: a}}", []string{"AccessList/a"}},
		"anchors":                       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a, labels: {app: *n}}\n", []string{"ConfigMap/a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rendering.Names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	got, err := parse("apiVersion: v1\nkind: X\nmetadata: {name: a, uid: u, creationTimestamp: null, labels: null, namespace: null}\nspec: {big: 12345678901, yes: yes, float: 1.5, empty: {}}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"big": int64(12345678901), "true": true, "float": 1.5, "empty": map[string]any{}},
	}
	if diff := cmp.Diff(want, got[0].Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestAnInvalidDocumentIsExplainedWithItsLine(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"not YAML":              {"---\n\na: b\nb: c\n  d: e\n", "a.yaml:5:3: broken YAML: mapping values are not allowed in this context: the line is indented by 2 spaces, so it continues line 4, which is indented by 0; indent it alike, or end line 4 with \":\""},
		"less than its sibling": {"---\n\nb:\n    c: d\n   e: f\n", "a.yaml:5:4: broken YAML: did not find expected key: the line is indented by 3 spaces; indent it by 4, like line 4, or by 0, like line 3"},
		"a tab":                 {"a:\n\tb: c\n", "a.yaml:2:1: broken YAML: found character that cannot start any token: indent by spaces instead of tabs"},
		"no kind":               {"apiVersion: v1\n", "a.yaml:1: kind is missing"},
		"generated name": {"# c\n---\n# c\n{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}",
			"a.yaml:4: Pod: metadata.generateName is refused: every pass would make another object; set metadata.name"},
		"item of a List": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [1]}]}", "a.yaml:1: items[0]: items[0]: not an object"},
		"items":          {"{apiVersion: v1, kind: List, items: 1}", "a.yaml:1: items of a List must be a list"},
		"several": {"a: 1\n---\nb: 1\n", "a.yaml:1: apiVersion and kind are missing: not a Kubernetes object\n" +
			"a.yaml:3: apiVersion and kind are missing: not a Kubernetes object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.in)
			rendering.WantError(t, err, tc.want)
		})
	}
}

func TestAliasBombsAreRefused(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		before := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+", ", 9), ", ") + "]\n"
	}
	tests := map[string]string{
		"billion laughs":       bomb,
		"in a later document":  "x: y\n---\n" + bomb,
		"one long text":        "a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a, ", 1100) + "]\n",
		"merge keys":           "a: &a {x: " + strings.Repeat("x", 600000) + "}\nb: {<<: *a}\nc: {<<: *a}\n",
		"anchor within itself": "a: &a [*a]\n",
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(in)
			if name == "anchor within itself" {
				rendering.WantError(t, err, `a.yaml:1: line 1: YAML anchor "a" contains itself: too large`)
				return
			}
			if !errors.Is(err, yamlcheck.ErrTooLarge) || !strings.Contains(err.Error(), "YAML aliases stand for more than 1048576 bytes") {
				t.Errorf("got %v, want the limit of aliases", err)
			}
		})
	}
}

func TestAFileOfTooManyObjectsIsRefused(t *testing.T) {
	var text strings.Builder
	most := int(budget.Default().App.Objects)
	for i := range most {
		fmt.Fprintf(&text, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}}\n---\n", i)
	}
	if _, err := parse(text.String()); err != nil {
		t.Errorf("%d objects: %v", most, err)
	}
	_, err := parse(text.String() + rendering.ConfigMap("more"))
	rendering.WantError(t, err, "objects of the app: 5001, and more than 5000 are not possible; remove some in Git")
	_, err = parse(strings.Repeat("- 1\n---\n", 20+5))
	if err == nil || !strings.HasSuffix(err.Error(), "\nand 5 more") {
		t.Errorf("got %v, want the first 20 problems and a count", err)
	}
}
