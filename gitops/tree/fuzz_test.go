package tree

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/gitops/layout"
)

// FuzzRead puts any text where an App is expected. Whatever it is, the reading ends, harms no other project, and either
// explains itself with usable problems or yields an object that kubectl would read the same from the file.
func FuzzRead(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(cases) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	const file = "projects/shop/apps/web/app.yaml"
	for _, name := range cases {
		c := loadCase(&testing.T{}, name)
		if seed, ok := c.files[file]; ok {
			f.Add(seed.Data)
		}
	}
	f.Add([]byte("a: &a\n  - *a\n"))
	f.Add([]byte("? {a: b}\n: c\n"))
	f.Add([]byte("\xef\xbb\xbfkind: App\n"))
	base := baseFiles(f, "tenant")
	f.Fuzz(func(t *testing.T, data []byte) {
		base[file] = &fstest.MapFile{Data: data}
		tree := fresh(base, Scope{Repository: "acme", Tenant: "acme"})
		if len(problems(tree)) == 0 {
			sameAsKubectl(t, data, tree)
			return
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, p := range problems(tree) {
			if p.Of.Path() != "acme/shop/web" || p.File != file || p.Line < 0 || p.Line > lines || p.Column < 0 || p.Column > len(data)+1 {
				t.Errorf("a problem of one file must be at a position in it and hold its app: %+v", p)
			}
			if len(p.Why) > 4096 || (utf8.Valid(data) && !utf8.ValidString(p.Why)) {
				t.Errorf("unusable message of %d bytes: %.200q", len(p.Why), p.Why)
			}
		}
		if c := tree.Counts(); c.Projects != 2 || c.Apps != 2 {
			t.Errorf("the siblings must go on: %s", describe(tree))
		}
	})
}

// sameAsKubectl compares what was read with the reading of the library that kubectl uses.
func sameAsKubectl(t *testing.T, data []byte, tree *Tree) {
	t.Helper()
	var theirs struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Type string `json:"type"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(data, &theirs); err != nil {
		return // stricter than this reader about text that is no field of ours
	}
	i := len(apps(tree)) - 1
	ours := apps(tree)[i]
	if theirs.Kind != ours.Kind || theirs.Metadata.Name != ours.Name || theirs.Spec.Type != string(ours.Spec.Type) {
		t.Errorf("read %s %s %s, kubectl reads %+v", ours.Kind, ours.Name, ours.Spec.Type, theirs)
	}
	if _, err := json.Marshal(ours); err != nil {
		t.Errorf("the object cannot be sent: %v", err)
	}
}

// FuzzLayoutVersion puts any text into kubeop.yaml: everything is read or everything is held.
func FuzzLayoutVersion(f *testing.F) {
	for _, seed := range []string{"layout: v1\n", "layout: v2", "layout: [v1]", "", "layout: v1\nx: y", "---\nlayout: v1\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := baseFiles(t, "tenant")
		files[layout.VersionFile] = &fstest.MapFile{Data: data}
		tree := fresh(files, Scope{Repository: "acme", Tenant: "acme"})
		read, held := len(apps(tree)) == 3, len(objects(tree)) == 0
		if read == (len(problems(tree)) > 0) || held == (len(problems(tree)) == 0) {
			t.Errorf("neither read nor held: %s", describe(tree))
		}
	})
}
