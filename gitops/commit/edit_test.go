package commit

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// fileOf is a folder with the file a.yaml; "" for none.
func fileOf(text string) *folder.Folder {
	files := fstest.MapFS{}
	if text != "" {
		files["a.yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder.FromFS(files).Folder(".")
}

// TestAFieldIsSetUnlessAnotherCommitChangedIt: base is the text that the requester saw, and was, if there is one, the value in its place.
func TestAFieldIsSetUnlessAnotherCommitChangedIt(t *testing.T) {
	for name, tc := range map[string]struct {
		base, newest string
		edit         Field
		want         string
		err          error
	}{
		"a changed field":                 {"a: 1\n", "a: 1\n", Field{Value: 2}, "a: 2\n", nil},
		"a new field":                     {"b: 1\n", "b: 1\n", Field{Value: 2}, "b: 1\na: 2\n", nil},
		"a field that is gone":            {"a: 1\nb: 1\n", "b: 1\n", Field{Value: 2}, "", ErrConflict},
		"a field that came":               {"b: 1\n", "b: 1\na: 1\n", Field{Value: 2}, "", ErrConflict},
		"a field that others deleted":     {"a: 1\nb: 1\n", "b: 1\n", Field{Delete: true}, "", nil},
		"a field that others set alike":   {"a: 1\n", "a: 2\n", Field{Value: 2}, "", nil},
		"a field to delete that others":   {"a: 1\nb: 1\n", "a: 2\nb: 1\n", Field{Delete: true}, "", ErrConflict},
		"the value that was seen":         {"a: 1\n", "a: 3\n", Field{Value: 2, Was: 3}, "a: 2\n", nil},
		"another value than was seen":     {"a: 1\n", "a: 1\n", Field{Value: 2, Was: 3}, "", ErrConflict},
		"seen, and gone":                  {"b: 1\n", "b: 1\n", Field{Value: 2, Was: 3}, "", ErrConflict},
		"the base was broken":             {"a: [\n", "a: 1\n", Field{Value: 2}, "a: 2\n", nil},
		"the base did not have the file":  {"", "a: 1\n", Field{Value: 2}, "a: 2\n", nil},
		"a broken file":                   {"a: 1\n", "a: [\n", Field{Value: 2}, "", ErrInvalidEdit},
		"a file that others deleted":      {"a: 1\n", "", Field{Value: 2}, "", ErrConflict},
		"a file that never was":           {"", "", Field{Value: 2}, "", ErrMissing},
		"a field to delete that is not":   {"b: 1\n", "b: 1\n", Field{Delete: true}, "", ErrInvalidEdit},
		"a field below one with no field": {"a: 1\n", "a: 1\n", Field{Path: field(t, "a.b"), Value: 2}, "", ErrInvalidEdit},
	} {
		if tc.edit.Path == nil {
			tc.edit.Path = field(t, "a")
		}
		changes, err := Changes(fileOf(tc.base), fileOf(tc.newest), []Edit{Set{File: "a.yaml", Fields: []Field{tc.edit}}})
		got := ""
		for _, c := range changes {
			got += string(c.Content)
		}
		if !errors.Is(err, tc.err) || got != tc.want {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, tc.want, tc.err)
		}
	}
}

// TestNoFileIsEditedTwiceInOneCommit, however far apart the edits are: the second would undo the first.
func TestNoFileIsEditedTwiceInOneCommit(t *testing.T) {
	edits := []Edit{Create{"c", nil}, Create{"a", nil}, Create{"b", nil}}
	changes, err := Changes(fileOf(""), fileOf(""), edits)
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, paths); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Changes(fileOf(""), fileOf(""), append(edits, Create{"c", []byte("2")})); !errors.Is(err, ErrInvalidEdit) {
		t.Errorf("c twice: got %v", err)
	}
}

// TestWhichCommitsArePushedTogether: those to one branch, and none with the credentials of another requester.
func TestWhichCommitsArePushedTogether(t *testing.T) {
	main := Remote{Source: git.Source{URL: "https://git.example.com/a.git", Ref: &sourcev1.GitRepositoryRef{Branch: "main"}}}
	same := main
	same.Source.Ref = &sourcev1.GitRepositoryRef{Branch: "main"}
	if main.Name() != same.Name() {
		t.Errorf("one branch has the names %q and %q", main.Name(), same.Name())
	}
	for what, change := range map[string]func(*git.Source){
		"the default branch": func(s *git.Source) { s.Ref = nil },
		"another branch":     func(s *git.Source) { s.Ref = &sourcev1.GitRepositoryRef{Branch: "other"} },
		"another repository": func(s *git.Source) { s.URL = "https://git.example.com/b.git" },
		"other credentials":  func(s *git.Source) { s.Auth.Password = "secret" },
		"another tenant":     func(s *git.Source) { s.Tenant = "acme" },
	} {
		other := main
		change(&other.Source)
		if name := other.Name(); name == main.Name() || strings.Contains(name, "secret") {
			t.Errorf("%s has the name %q", what, name)
		}
	}
}
