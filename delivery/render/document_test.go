package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// names lists objects as "<kind>/<name>".
func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetKind()+"/"+o.GetName())
	}
	return all
}

func TestParse(t *testing.T) {
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
		"the same object twice":         {a + "\n---\n" + a, []string{"ConfigMap/a", "ConfigMap/a"}},
		"a key twice, as Helm takes it": {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  name: a\n", []string{"ConfigMap/a"}},
		"anchors":                       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a, labels: {app: *n}}\n", []string{"ConfigMap/a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseKeepsValues(t *testing.T) {
	got, err := Parse([]byte("apiVersion: v1\nkind: X\nmetadata: {name: a, uid: u, creationTimestamp: null, labels: null, namespace: null}\nspec: {big: 12345678901, yes: yes, float: 1.5, empty: {}}\n"))
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

func TestParseErrors(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"not YAML": {"---\n\na: b\nb: c\n  d: e\n", "line 3: yaml: line 5: mapping values are not allowed in this context"},
		"template": {"# Source: shop/templates/a.yaml\n- 1\n", "shop/templates/a.yaml: not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"},
		"no kind":  {"apiVersion: v1\n", "line 1: kind is missing"},
		"generated name": {"# c\n---\n# c\n{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}",
			"line 4: Pod: metadata.generateName is refused: every pass would make another object; set metadata.name"},
		"item of a List": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [1]}]}", "line 1: items[0]: items[0]: not an object"},
		"items":          {"{apiVersion: v1, kind: List, items: 1}", "line 1: items of a List must be a list"},
		"several": {"a: 1\n---\nb: 1\n", "line 1: apiVersion and kind are missing: not a Kubernetes object\n" +
			"line 3: apiVersion and kind are missing: not a Kubernetes object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in))
			wantError(t, err, tc.want)
		})
	}
}

func TestParseRefusesAliasBombs(t *testing.T) {
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
			_, err := Parse([]byte(in))
			if name == "anchor within itself" {
				wantError(t, err, `line 1: line 1: YAML anchor "a" contains itself: too large`)
				return
			}
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "YAML aliases stand for more than 1048576 bytes") {
				t.Errorf("got %v, want the limit of aliases", err)
			}
		})
	}
}

func TestParseLimits(t *testing.T) {
	doc := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n"
	if _, err := Parse([]byte(strings.Repeat(doc, int(usual().Limits.Objects)))); err != nil {
		t.Errorf("%d objects: %v", int(usual().Limits.Objects), err)
	}
	_, err := Parse([]byte(strings.Repeat(doc, int(usual().Limits.Objects)+1)))
	wantError(t, err, "objects of the app: 5001, and more than 5000 are not possible; remove some")
	_, err = Parse([]byte(strings.Repeat("- 1\n---\n", maxProblems+5)))
	if err == nil || !strings.HasSuffix(err.Error(), "\nand 5 more") {
		t.Errorf("got %v, want the first %d problems and a count", err, maxProblems)
	}
}
