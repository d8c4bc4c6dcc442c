package commit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/edit"
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

// TestCommitsToOneBranchByOneRequesterArePushedTogether, and none with the credentials of another requester.
func TestCommitsToOneBranchByOneRequesterArePushedTogether(t *testing.T) {
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

// TestAnObjectBecomesTheWantedOne: only what differs is written, in the innermost fields.
func TestAnObjectBecomesTheWantedOne(t *testing.T) {
	const text = "a: {b: 1} # flow\nlist:\n- name: x # first\n  value: 1\n- name: y\n# end\n"
	const other = "a: {b: 9} # flow\nlist:\n- name: x # first\n  value: 1\n- name: y\n# end\n"
	many := map[string]any{}
	for i := range maxFields + 1 {
		many["k"+strings.Repeat("x", i)] = 1
	}
	for name, tc := range map[string]struct {
		base, newest string
		patch        map[string]any
		want         string
		err          error
	}{
		"one field":              {text, text, map[string]any{"a": map[string]any{"b": 2.0}}, strings.Replace(text, "b: 1", "b: 2", 1), nil},
		"an item of a list":      {text, text, map[string]any{"list": []any{map[string]any{"name": "x", "value": 2.0}, map[string]any{"name": "y"}}}, strings.Replace(text, "value: 1", "value: 2", 1), nil},
		"a field less":           {text, text, map[string]any{"a": nil}, strings.TrimPrefix(text, "a: {b: 1} # flow\n"), nil},
		"what is not there":      {text, text, map[string]any{"c": nil, "a": map[string]any{"c": nil}}, "", nil},
		"a new object":           {"a: 1\n", "a: 1\n", map[string]any{"b": map[string]any{"c": 1.0, "d": nil}}, "a: 1\nb:\n  c: 1\n", nil},
		"another field changed":  {text, other, map[string]any{"list": []any{}}, "a: {b: 9} # flow\nlist: []\n# end\n", nil},
		"an item more":           {text, text, map[string]any{"list": []any{map[string]any{"name": "x", "value": 1.0}, map[string]any{"name": "y"}, map[string]any{"name": "z"}, "w"}}, strings.Replace(text, "- name: y\n", "- name: y\n- name: z\n- w\n", 1), nil},
		"an item less":           {text, text, map[string]any{"list": []any{map[string]any{"name": "x", "value": 1.0}}}, strings.Replace(text, "- name: y\n", "", 1), nil},
		"other items":            {text, text, map[string]any{"list": []any{"z"}}, "a: {b: 1} # flow\nlist:\n  - z\n# end\n", nil},
		"the first field":        {text, text, map[string]any{"list": []any{map[string]any{"value": 1.0}, map[string]any{"name": "y"}}}, "a: {b: 1} # flow\nlist:\n- value: 1\n- name: y\n# end\n", nil},
		"a field in brackets":    {"a: {b: 1, c: 2} # flow\n", "a: {b: 1, c: 2} # flow\n", map[string]any{"a": map[string]any{"b": nil}}, "a:  # flow\n  c: 2\n", nil},
		"an alias":               {"a: &x {b: 1}\nb: *x\n", "a: &x {b: 1}\nb: *x\n", map[string]any{"b": map[string]any{"c": 1.0}}, "", ErrInvalidEdit},
		"the same field changed": {text, other, map[string]any{"a": map[string]any{"b": 2.0}}, "", ErrConflict},
		"the file came":          {"", text, map[string]any{"a": map[string]any{"b": 2.0}}, strings.Replace(text, "b: 1", "b: 2", 1), nil},
		"the file is not there":  {"", "", map[string]any{"a": 1.0}, "", ErrMissing},
		"the file went":          {text, "", map[string]any{"a": 1.0}, "", ErrConflict},
		"the file is no YAML":    {"a: [", "a: [", map[string]any{"a": 1.0}, "", ErrInvalidEdit},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := Changes(fileOf(tc.base), fileOf(tc.newest), []Edit{Become{File: "a.yaml", Wanted: Merge(tc.patch)}})
			got := ""
			if len(changes) > 0 {
				got = string(changes[0].Content)
			}
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Errorf("got %v\n%s", err, cmp.Diff(tc.want, got))
			}
		})
	}
	changes, err := Changes(fileOf("a:\n  b: 1 # lost\nc: 1 # kept\n"), fileOf("a:\n  b: 1 # lost\nc: 1 # kept\n"), []Edit{Become{File: "a.yaml", Wanted: Merge(map[string]any{"a": many})}})
	if err != nil || len(changes) != 1 || !strings.Contains(string(changes[0].Content), "c: 1 # kept") || strings.Count(string(changes[0].Content), "\n") != maxFields+4 || !strings.Contains(string(changes[0].Content), "b: 1\n") {
		t.Errorf("many fields: %v %v", err, changes)
	}
}

// TestParsingIsBounded: each field that changes by itself parses the file again, so only few do in a large file, and the others are written anew together.
func TestParsingIsBounded(t *testing.T) {
	text := "a: # kept\n"
	for i := range 400 {
		text += fmt.Sprintf("  k%d: %s # kept\n", i, strings.Repeat("x", 100))
	}
	for fields, kept := range map[int]int{2: 401, 20: 1} {
		patch := map[string]any{}
		for i := range fields {
			patch[fmt.Sprintf("k%d", i)] = "new"
		}
		changes, err := Changes(fileOf(text), fileOf(text), []Edit{Become{File: "a.yaml", Wanted: Merge(map[string]any{"a": patch})}})
		if err != nil || len(changes) != 1 {
			t.Fatal(changes, err)
		}
		got := string(changes[0].Content)
		if n := strings.Count(got, "# kept"); n != kept || strings.Count(got, ": new") != fields {
			t.Errorf("%d fields: %d comments are kept", fields, n)
		}
	}
}

// TestADeepSpecIsReadOnce, and not again at each of its levels.
func TestADeepSpecIsReadOnce(t *testing.T) {
	var deep any = map[string]any{"text": strings.Split(strings.Repeat("x ", 500), " ")}
	for range 50 {
		deep = map[string]any{"a": deep}
	}
	text, err := yaml.Marshal(map[string]any{"spec": deep, "other": 1})
	if err != nil {
		t.Fatal(err)
	}
	once := testing.AllocsPerRun(1, func() {
		if _, err := edit.Normal(deep); err != nil {
			t.Error(err)
		}
	})
	whole := testing.AllocsPerRun(1, func() {
		if _, err := Changes(fileOf(string(text)), fileOf(string(text)), []Edit{Become{File: "a.yaml", Wanted: Merge(map[string]any{"spec": deep, "other": 2})}}); err != nil {
			t.Error(err)
		}
	})
	if whole > 10*once {
		t.Errorf("a change allocates %.0f times, and reading what is wanted %.0f", whole, once)
	}
}

// TestAnEditThatPanicsIsInvalid also for callers that make no commit of it, such as to show a conflict.
func TestAnEditThatPanicsIsInvalid(t *testing.T) {
	if changes, err := Changes(fileOf(""), fileOf(""), []Edit{panicking{}}); !errors.Is(err, ErrInvalidEdit) || changes != nil {
		t.Errorf("got %v, %v", changes, err)
	}
}
