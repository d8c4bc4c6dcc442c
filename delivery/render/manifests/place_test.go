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
		"m/broken.yaml":   {Data: []byte("kind: Broken\n  metadata: {name: x}\n")},
		"m/large.yaml":    {Data: []byte(rendering.ConfigMap("large") + "# " + strings.Repeat("x", documentBytes))},
		"other/more.yaml": {Data: []byte(rendering.ConfigMap("a"))},
		"beside/a.yaml":   {Data: []byte("kind: Service\nmetadata: {name: only}\n")},
		"huge/a.yaml":     {Data: []byte(rendering.ConfigMap("a"))},
		"huge/b.txt":      {Data: []byte(strings.Repeat("x", placeBytes))},
	}
	many := fstest.MapFS{"a.yaml": {Data: []byte(rendering.ConfigMap("a"))}, "b.yaml": {Data: []byte(strings.Repeat("#\n", placeBytes/2))}}
	if file, line, found := Place(many, "", "ConfigMap/a"); found {
		t.Errorf("where there is too much to read: got %s:%d", file, line)
	}
	for name, c := range map[string]struct{ folder, object, want string }{
		"the second document":            {"m", "ConfigMap/a", "m/all.yaml:3"},
		"after an empty line":            {"m", "ConfigMap/b", "m/all.yaml:9"},
		"of another kind":                {"m", "Other/a", "m/all.yaml:14"},
		"in a List":                      {"m", "Service/web", "m/list.json:1"},
		"twice":                          {"m", "ConfigMap/twice", ""},
		"in two folders":                 {".", "ConfigMap/a", ""},
		"nowhere":                        {"m", "ConfigMap/c", ""},
		"in a broken document":           {"m", "Broken/x", ""},
		"in a large document":            {"m", "ConfigMap/large", ""},
		"beside a large file of its own": {"huge", "ConfigMap/a", "huge/a.yaml:1"},
		"beside the folder":              {"huge", "Service/only", "beside/a.yaml:1"},
		"nor beside it":                  {"none", "ConfigMap/a", ""},
	} {
		file, line, found := Place(files, c.folder, c.object)
		got := ""
		if found {
			got = fmt.Sprintf("%s:%d", file, line)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
