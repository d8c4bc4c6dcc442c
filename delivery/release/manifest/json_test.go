package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

func TestTemplatesAreConvertedToJSON(t *testing.T) {
	in := map[string]string{
		"web/templates/a.yaml":       "kind: B\napiVersion: v1\nmetadata: {name: 2}\n---\n# a comment\napiVersion: v1\nkind: C\nitems:\n- {apiVersion: v1, kind: D}\n",
		"web/templates/empty.yaml":   " \n",
		"web/templates/comment.yaml": "# nothing\n",
		"web/templates/_lib.tpl":     "no: [yaml",
		"web/templates/NOTES.txt":    "no: [yaml",
	}
	want := map[string]string{
		"web/templates/a.yaml": "---\n" + `{"apiVersion":"v1","kind":"B","metadata":{"name":2}}` + "\n---\n" +
			`{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"D"}],"kind":"C"}` + "\n",
		"web/templates/empty.yaml":   " \n",
		"web/templates/comment.yaml": "---\nnull\n",
		"web/templates/_lib.tpl":     "no: [yaml",
		"web/templates/NOTES.txt":    "no: [yaml",
	}
	var read []string
	got, err := InJSON(in, func(what string) { read = append(read, what) })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(read) != 3 || read[0] != "reading what template web/templates/a.yaml renders to" {
		t.Errorf("noted %q", read)
	}
}

// TestTheDocumentsOfATemplateStayInOrder, also if there are more than ten, which sorts differently as text.
func TestTheDocumentsOfATemplateStayInOrder(t *testing.T) {
	var in, want strings.Builder
	for i := range 12 {
		fmt.Fprintf(&in, "---\napiVersion: v1\nkind: K%d\n", i)
		fmt.Fprintf(&want, "---\n{\"apiVersion\":\"v1\",\"kind\":\"K%d\"}\n", i)
	}
	got, err := InJSON(map[string]string{"a.yaml": in.String()}, func(string) {})
	if diff := cmp.Diff(want.String(), got["a.yaml"]); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTemplatesThatCannotBeConverted(t *testing.T) {
	nodes := "apiVersion: v1\nkind: A\nlist: [" + strings.Repeat("0,", yamlcheck.MaxNodes/2) + "0]\n"
	for name, c := range map[string]struct {
		templates map[string]string
		kind      error
		says      string
	}{
		"no YAML":                 {map[string]string{"a.yaml": "a: [\n"}, nil, "YAML parse error on a.yaml"},
		"no object":               {map[string]string{"a.yaml": "- 1\n"}, nil, "a.yaml"},
		"no kind":                 {map[string]string{"a.yaml": "apiVersion: v1\n"}, nil, "a.yaml: an object has no kind or no apiVersion"},
		"a hook that is a list":   {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: test}}\nitems: 7\n"}, fault.ErrRender, "hook a.yaml: a manifest: the items of a List are not a list"},
		"no object, beside notes": {map[string]string{"a.yaml": "- 1\n", "NOTES.txt": "no: [yaml"}, nil, "a.yaml"},
		"together too many nodes": {map[string]string{"a.yaml": nodes, "b.yaml": nodes, "c.yaml": nodes}, yamlcheck.ErrNodes, "what template b.yaml renders to: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := InJSON(c.templates, func(string) {})
			if err == nil || got != nil || !strings.Contains(err.Error(), c.says) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("got %d templates, %v, want %q", len(got), err, c.says)
			}
		})
	}
}
