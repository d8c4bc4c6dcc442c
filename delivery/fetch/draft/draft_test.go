package draft

import (
	"bytes"
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
)

// parentOf is a commit with these files.
func parentOf(files map[string]string) *folder.Folder {
	all := fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o644}
	}
	return folder.FromFS(all).Folder(".")
}

// made returns the draft of one commit.
func made(t *testing.T, parent *folder.Folder, c Commit, changes ...Change) *Draft {
	t.Helper()
	d := New()
	if err := d.Add(parent, c, changes); err != nil {
		t.Fatal(err)
	}
	return d
}

// hashes are those of the commits of a draft.
func hashes(t *testing.T, d *Draft, parent string) []string {
	t.Helper()
	hashes, err := d.Make(parent)
	if err != nil {
		t.Fatal(err)
	}
	return hashes
}

// unpacked returns the output of git about the objects of a draft, in an empty repository.
func unpacked(t *testing.T, d *Draft, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	var pack bytes.Buffer
	if err := d.Pack(&pack); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--quiet", "--bare"}, {"unpack-objects", "-q"}, args} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+filepath.Join(dir, "home"))
		if args[0] == "unpack-objects" {
			cmd.Stdin = &pack
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
		if args[0] != "init" && args[0] != "unpack-objects" {
			return string(out)
		}
	}
	return ""
}

func TestAFirstCommitNeedsNoParent(t *testing.T) {
	c := Commit{Message: "First\n", Author: Person{"Ann", "ann@example.com"}, Committer: Person{"kubeop", "k@example.com"}, At: time.Unix(5, 0).UTC()}
	d := made(t, parentOf(nil), c, Change{Path: "a/b", Content: []byte("x")}, Change{Path: "a.yaml", Content: []byte{}}, Change{Path: "gone"})
	hash := hashes(t, d, "")[0]
	got := unpacked(t, d, "ls-tree", "-r", "--name-only", hash)
	if got != "a.yaml\na/b\n" {
		t.Errorf("the commit has\n%s", got)
	}
	if got := unpacked(t, d, "rev-parse", hash+"^{tree}"); strings.TrimSpace(got) != d.Commits[0].Tree {
		t.Errorf("the tree is %s, want %s", got, d.Commits[0].Tree)
	}
}

// TestACommitHasTheFilesOfTheOneBefore and what it changes; one that cannot be made leaves nothing behind.
func TestACommitHasTheFilesOfTheOneBefore(t *testing.T) {
	parent := parentOf(map[string]string{"a/old": "0", "b/old": "0"})
	d := made(t, parent, Commit{Message: "1\n"}, Change{Path: "a/one", Content: []byte("1")})
	at, size := parent.Over(d), d.Bytes()
	first := at(d.Commits[0].Tree)
	if err := d.Add(first, Commit{}, []Change{{Path: "c", Content: []byte("half")}, {Path: "a/one/x", Content: []byte("x")}}); err == nil || d.Bytes() != size || len(d.Commits) != 1 {
		t.Errorf("a file below a file: %v, %d bytes more", err, d.Bytes()-size)
	}
	if err := d.Add(first, Commit{Message: "2\n"}, []Change{{Path: "a/two", Content: []byte("22")}, {Path: "b/old"}}); err != nil || d.Bytes() <= size {
		t.Errorf("%v, %d bytes more", err, d.Bytes()-size)
	}
	second := at(d.Commits[1].Tree)
	for name, want := range map[string]string{"a/old": "0", "a/one": "1", "a/two": "22"} {
		if info, err := second.Stat(name); err != nil || info.Size() != int64(len(want)) {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		if text, err := second.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v, want %q", name, text, err, want)
		}
	}
	if _, err := second.ReadFile("b/old"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a deleted file: %v", err)
	}
	all := hashes(t, d, "")
	if got := unpacked(t, d, "log", "--format=%H%s", all[1]); got != all[1]+"2\n"+all[0]+"1\n" {
		t.Errorf("the commits are\n%s", got)
	}
	if got := unpacked(t, d, "ls-tree", "--name-only", all[0]+":a"); got != "old\none\n" {
		t.Errorf("the first commit has\n%s", got)
	}
}

// TestALargeNewFileIsNotRead, as a large file of the parent is not.
func TestALargeNewFileIsNotRead(t *testing.T) {
	parent := parentOf(nil)
	d := made(t, parent, Commit{}, Change{Path: "a", Content: make([]byte, folder.DefaultLimits().File+1)})
	if _, err := parent.Over(d)(d.Commits[0].Tree).ReadFile("a"); !errors.Is(err, failure.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// TestACommitIsWhatItWasMadeOf: its parent, its people, its time and its message, as git reads them.
func TestACommitIsWhatItWasMadeOf(t *testing.T) {
	parent, at := strings.Repeat("ab", 20), time.Unix(1767225600, 0).In(time.FixedZone("CET", 3600))
	c := Commit{Message: "Change b\n\nBecause.\n", Author: Person{"Ann", "ann@example.com"}, Committer: Person{"kubeop", "k@example.com"}, At: at}
	d := made(t, parentOf(map[string]string{"a": "1"}), c, Change{Path: "b", Content: []byte("2")})
	hash := hashes(t, d, parent)[0]
	want := "tree " + d.Commits[0].Tree + "\nparent " + parent + "\nauthor Ann <ann@example.com> 1767225600 +0100\ncommitter kubeop <k@example.com> 1767225600 +0100\n\nChange b\n\nBecause.\n"
	if diff := cmp.Diff(want, unpacked(t, d, "cat-file", "-p", hash)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFilesThatNoChangeNamesStayAsTheyAre: other files and folders keep their content and their mode, and a program stays executable.
func TestFilesThatNoChangeNamesStayAsTheyAre(t *testing.T) {
	files := fstest.MapFS{
		"bin/run": {Data: []byte("old"), Mode: 0o755}, "bin/stop": {Data: []byte("old"), Mode: 0o755}, "bin/note": {Data: []byte("old"), Mode: 0o644},
		"link": {Data: []byte("bin/run"), Mode: fs.ModeSymlink | 0o777}, "other/file": {Data: []byte("old"), Mode: 0o644},
	}
	parent, tree := folder.FromFS(files).Folder("."), strings.Repeat("cd", 20)
	d := made(t, parent, Commit{}, Change{Path: "bin/run", Content: []byte("new")}, Change{Path: "bin/note", Content: []byte("new")}, Change{Path: "taken/over", Tree: tree})
	hashOf := func(name string) string {
		hash, err := parent.Digest(name)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	const content = "3e5126c4e761fd09582fc517918a1601b218dff0"
	for folder, want := range map[string]string{
		":bin":   "100644 blob " + content + "\tnote\n100755 blob " + content + "\trun\n100755 blob " + hashOf("bin/stop") + "\tstop\n",
		":taken": "040000 tree " + tree + "\tover\n",
		"":       "040000 tree BIN\tbin\n120000 blob " + hashOf("link") + "\tlink\n040000 tree " + hashOf("other") + "\tother\n040000 tree TAKEN\ttaken\n",
	} {
		got := unpacked(t, d, "ls-tree", d.Commits[0].Tree+folder)
		if folder == "" {
			for name, place := range map[string]string{":bin": "BIN", ":taken": "TAKEN"} {
				want = strings.Replace(want, place, strings.TrimSpace(unpacked(t, d, "rev-parse", d.Commits[0].Tree+name)), 1)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", folder, diff)
		}
	}
	if text := unpacked(t, d, "cat-file", "-p", content); text != "new" {
		t.Errorf("the changed files have the content %q", text)
	}
}

// TestChangesGiveTheEntriesOfTheirFolders compares with what the folders' entries are afterwards; "-" is a folder that does not exist.
func TestChangesGiveTheEntriesOfTheirFolders(t *testing.T) {
	parent := parentOf(map[string]string{"a/one": "1", "a/two": "2", "a/deep/three": "3", "b": "4"})
	tree := strings.Repeat("ab", 20)
	for name, tc := range map[string]struct {
		changes []Change
		at      string
		want    string
		err     string
	}{
		"a file changes":              {[]Change{{Path: "a/one", Content: []byte("x")}}, "a", "deep one two", ""},
		"a file is deleted":           {[]Change{{Path: "a/one"}}, "a", "deep two", ""},
		"a folder is deleted":         {[]Change{{Path: "a/deep"}}, "a", "one two", ""},
		"the last file of a folder":   {[]Change{{Path: "a/deep/three"}}, "a", "one two", ""},
		"what is not there":           {[]Change{{Path: "c/d"}}, ".", "a b", ""},
		"a folder is replaced":        {[]Change{{Path: "a", Tree: tree}}, ".", "a b", ""},
		"a file below a file":         {[]Change{{Path: "b/c", Content: []byte("x")}}, ".", "", "b is no folder"},
		"a folder and a file of it":   {[]Change{{Path: "a"}, {Path: "a/one", Content: []byte("x")}}, ".", "", "a is changed as a whole and in parts"},
		"the root":                    {[]Change{{Path: "."}}, ".", "", `"." is no path`},
		"out of the repository":       {[]Change{{Path: "a/../../b"}}, ".", "", "is no path"},
		"a folder becomes a file":     {[]Change{{Path: "a/deep", Content: []byte("x")}}, "a", "deep one two", ""},
		"two files of one new folder": {[]Change{{Path: "c/d", Content: []byte("1")}, {Path: "c/e", Content: []byte("2")}}, "c", "d e", ""},
	} {
		d := New()
		err := d.Add(parent, Commit{}, tc.changes)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", name, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		spec := d.Commits[0].Tree
		if tc.at != "." {
			spec += ":" + tc.at
		}
		if got := strings.Join(strings.Fields(unpacked(t, d, "ls-tree", "--name-only", spec)), " "); got != tc.want {
			t.Errorf("%s: %s has %q, want %q", name, tc.at, got, tc.want)
		}
	}
	if text, err := fs.ReadFile(parent, "a/one"); err != nil || string(text) != "1" {
		t.Errorf("the parent has %q now, %v", text, err)
	}
}

func TestTheNameOfAPersonIsWrittenOnOneLine(t *testing.T) {
	s := Person{Name: "Ann\n<b>\x00", Email: " a@b>\nparent x "}.signed(time.Time{})
	if s.Name != "Annb" || s.Email != "a@bparent x" {
		t.Errorf("got %q %q", s.Name, s.Email)
	}
}
