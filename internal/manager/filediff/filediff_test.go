package filediff

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestOnlyWhatDiffersIsReturned(t *testing.T) {
	before := fstest.MapFS{"same": file("x"), "changed": file("a\nb\n"), "gone/deep": file("x\n"), "was-folder/in": file("x\n"), "was-file": file("x\n"), "binary": file("a\x00b"), "exec": file("x")}
	after := fstest.MapFS{"same": file("x"), "changed": file("a\nc\n"), "new/deep": file("y"), "was-folder": file("y\n"), "was-file/in": file("y\n"), "binary": file("a\x00c"), "link": {Data: []byte("x"), Mode: fs.ModeSymlink}}
	got, err := Of(t.Context(), before, after, "apps/web")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range got.Files {
		files[f.Path] = f.Change + " " + f.Omitted
		if (f.Patch == "") != (f.Omitted != "") {
			t.Errorf("%+v", f)
		}
	}
	want := map[string]string{
		"apps/web/same":    "changed only its mode differs", // These entries have no digest.
		"apps/web/changed": "changed ", "apps/web/gone/deep": "removed ", "apps/web/new/deep": "added ", "apps/web/was-folder": "added ", "apps/web/was-folder/in": "removed ",
		"apps/web/was-file": "removed ", "apps/web/was-file/in": "added ", "apps/web/binary": "changed the file is no text", "apps/web/exec": "removed ",
		"apps/web/link": "added it is no file, but a symbolic link or a submodule",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestGitAppliesThePatches, so they are what differs.
func TestGitAppliesThePatches(t *testing.T) {
	before := map[string]string{"changed": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine", "gone": "x\ny\n"}
	after := map[string]string{"changed": "zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nten\n", "new": "a\nb"}
	side := func(files map[string]string) fs.FS {
		all := fstest.MapFS{}
		for name, text := range files {
			all[name] = file(text)
		}
		return all
	}
	got, err := Of(t.Context(), side(before), side(after), "a b")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range before {
		if err := os.MkdirAll(filepath.Join(dir, "a b"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a b", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var patches strings.Builder
	for _, f := range got.Files {
		patches.WriteString(f.Patch)
	}
	apply := exec.Command("git", "apply", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(patches.String())
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, patches.String())
	}
	is := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "a b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, "a b", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		is[e.Name()] = string(text)
	}
	if diff := cmp.Diff(after, is); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	for name, text := range map[string]string{
		"YAML": "kind: Secret\nstringData: {a: hunter2}\n", "quoted": `"kind" : "Secret"` + "\n# hunter2", "JSON": `{"kind":"Secret","data":{"a":"hunter2"}}`, "a later document": "kind: A\n---\napiVersion: v1\nkind:  'Secret'\na: hunter2",
		"a tag": "kind: !!str Secret\na: hunter2", "an anchor": "kind: &k Secret\na: hunter2", "the next line": "kind:\n  Secret\na: hunter2", "a list": "kind: SecretList\nitems: [hunter2]",
	} {
		for _, sides := range [][2]fs.FS{{fstest.MapFS{"f": file(text)}, fstest.MapFS{"f": file("x\n")}}, {nil, fstest.MapFS{"f": file(text)}}, {fstest.MapFS{"f": file(text)}, nil}} {
			got, err := Of(t.Context(), sides[0], sides[1], "")
			if err != nil || len(got.Files) != 1 || got.Files[0].Omitted == "" || strings.Contains(got.Files[0].Patch, "hunter2") {
				t.Errorf("%s: %v %+v", name, err, got)
			}
		}
	}
}

// unreadable fails the test when one of its files is read.
type unreadable struct {
	fstest.MapFS
	t    *testing.T
	name string
}

// ReadFile implements fs.ReadFileFS.
func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		u.t.Errorf("%s is read", name)
	}
	return u.MapFS.ReadFile(name)
}

// TestNothingIsReadAfterTheLimitOfPatchesOrTheEndOfTheRequest: who asks often would otherwise cost much for nothing.
func TestNothingIsReadAfterTheLimitOfPatchesOrTheEndOfTheRequest(t *testing.T) {
	large := fstest.MapFS{"last": file("x\n")}
	for _, name := range []string{"a", "b", "c"} {
		large[name] = file(strings.Repeat("line\n", maxFile/6))
	}
	got, err := Of(t.Context(), nil, unreadable{large, t, "last"}, "")
	if err != nil || len(got.Files) != 4 || got.Files[3].Omitted != tooLarge {
		t.Errorf("%v: %+v", err, got.Files[len(got.Files)-1])
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Of(ended, nil, unreadable{large, t, "a"}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the request: %v", err)
	}
}

// TestHostileFilesAreBounded: their size, their number, their names, and how long they take.
func TestHostileFilesAreBounded(t *testing.T) {
	many := fstest.MapFS{}
	for i := range maxFiles + 10 {
		many["f"+strings.Repeat("x", i)] = file("x\n")
	}
	if got, err := Of(t.Context(), nil, many, ""); err != nil || len(got.Files) != maxFiles || !got.More {
		t.Errorf("many files: %v %d %v", err, len(got.Files), got.More)
	}
	got, err := Of(t.Context(), nil, fstest.MapFS{"a": file(strings.Repeat("x", maxFile+1)), "b": file("x"), "c\n+++ d": file("x")}, "")
	if err != nil || len(got.Files) != 3 || got.Files[0].Omitted != "the file is too large" || got.Files[1].Omitted != "" || got.Files[2].Omitted != "its name has a control character" {
		t.Errorf("%v %+v", err, got)
	}
	large := fstest.MapFS{}
	for _, name := range []string{"a", "b", "c", "d"} {
		large[name] = file(strings.Repeat("line\n", maxFile/6))
	}
	if got, err = Of(t.Context(), nil, large, ""); err != nil || len(got.Files) != 4 || got.Files[0].Omitted != "" || !strings.Contains(got.Files[3].Omitted, "too large") {
		t.Errorf("%v %+v", err, got)
	}
	// Lines that repeat are the worst case of most algorithms.
	began := time.Now()
	if _, err := Of(t.Context(), fstest.MapFS{"f": file(strings.Repeat("a\nb\nc\n", maxFile/6))}, fstest.MapFS{"f": file(strings.Repeat("b\na\nc\n", maxFile/6))}, ""); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
