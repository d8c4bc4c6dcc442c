package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

// TestThePlaceOfAManifestIsKnownIfOnlyOneDocumentHasIt.
func TestThePlaceOfAManifestIsKnownIfOnlyOneDocumentHasIt(t *testing.T) {
	files := fstest.MapFS{
		"m/all.yaml":      {Data: []byte("# All.\n---\n" + rendering.ConfigMap("a") + "---\n\n" + rendering.ConfigMap("b") + "---\nkind: Other\nmetadata: {name: a}\n")},
		"m/list.json":     {Data: []byte(`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}]}`)},
		"m/sub/twice.yml": {Data: []byte(rendering.ConfigMap("twice") + "---\n" + rendering.ConfigMap("twice"))},
		"m/braces.yaml":   {Data: []byte("kind: \"Braces\" # quoted\r\nmetadata: {labels: {name: y}, name: 'x' }\r\n---\nkind: Braces\nmetadata: {namespace: n, name: z}\n")},
		"m/block.yaml":    {Data: []byte("metadata: # first\n  # a comment\n  labels:\n    name: y\n  name: x # a name\nspec:\n  name: z\nkind: Block\n")},
		"m/large.yaml":    {Data: []byte(rendering.ConfigMap("large") + "# " + strings.Repeat("x", documentBytes))},
		"other/more.yaml": {Data: []byte(rendering.ConfigMap("a"))},
		"beside/a.yaml":   {Data: []byte("kind: Service\nmetadata: {name: only}\n")},
		"huge/a.yaml":     {Data: []byte(rendering.ConfigMap("a"))},
		"huge/b.txt":      {Data: []byte(strings.Repeat("x", placeBytes))},
	}
	large := fstest.MapFS{"a.yaml": {Data: []byte(rendering.ConfigMap("a"))}, "b.yaml": {Data: []byte(strings.Repeat("#\n", placeBytes/2))}}
	many := fstest.MapFS{"a.yaml": {Data: []byte(rendering.ConfigMap("a"))}}
	for i := range placeEntries {
		many[fmt.Sprint("more/", i)] = &fstest.MapFile{}
	}
	for _, files := range []fstest.MapFS{large, many} {
		if places := Places(files, "", []string{"ConfigMap/a"}); len(places) > 0 {
			t.Errorf("where there is too much to read: got %v", places)
		}
	}
	for name, c := range map[string]struct{ folder, object, want string }{
		"the second document":            {"m", "ConfigMap/a", "m/all.yaml:3"},
		"after an empty line":            {"m", "ConfigMap/b", "m/all.yaml:9"},
		"of another kind":                {"m", "Other/a", "m/all.yaml:14"},
		"in a List":                      {"m", "Service/web", ""},
		"twice":                          {"m", "ConfigMap/twice", ""},
		"in two folders":                 {".", "ConfigMap/a", ""},
		"nowhere":                        {"m", "ConfigMap/c", ""},
		"in braces":                      {"m", "Braces/z", "m/braces.yaml:4"},
		"a label in braces":              {"m", "Braces/y", ""},
		"behind labels in braces":        {"m", "Braces/x", ""},
		"in a block":                     {"m", "Block/x", "m/block.yaml:1"},
		"a label in a block":             {"m", "Block/y", ""},
		"a field of another block":       {"m", "Block/z", ""},
		"in a large document":            {"m", "ConfigMap/large", ""},
		"beside a large file of its own": {"huge", "ConfigMap/a", "huge/a.yaml:1"},
		"beside the folder":              {"huge", "Service/only", "beside/a.yaml:1"},
		"nor beside it":                  {"none", "ConfigMap/a", ""},
	} {
		got := ""
		for object, at := range Places(files, c.folder, []string{c.object, "Secret/none"}) {
			got += fmt.Sprintf("%s:%d", at.File, at.Line)
			if object != c.object {
				t.Errorf("%s: found %s", name, object)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
