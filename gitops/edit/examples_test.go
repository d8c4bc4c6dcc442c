package edit

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fences are the examples of YAML in a page.
var fences = regexp.MustCompile("(?ms)^```yaml[^\n]*\n(.*?)^```")

// examples returns the objects in docs and in the charts and example repositories, each a text that can be read.
func examples(t testing.TB) (all []string) {
	t.Helper()
	for _, root := range []string{"../../docs", "../examples", "../../charts/kubeop/values.yaml"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			isPage, isFile := strings.HasSuffix(path, ".md"), strings.HasSuffix(path, ".yaml")
			if err != nil || !isPage && !isFile {
				return err
			}
			text, err := os.ReadFile(path)
			if isFile {
				all = append(all, string(text))
			}
			for _, fence := range fences.FindAllStringSubmatch(string(text), -1) {
				if isPage {
					all = append(all, fence[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all = slices.DeleteFunc(all, func(text string) bool { _, err := Read([]byte(text)); return err != nil })
	if len(all) < 50 {
		t.Fatalf("only %d examples are found", len(all))
	}
	return all
}

// leaves returns the paths of all values that hold no other.
func leaves(at Path, value any) (all []Path) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, leaves(append(slices.Clone(at), key), value[key])...)
		}
	case []any:
		for i := range value {
			all = append(all, leaves(append(slices.Clone(at), i), value[i])...)
		}
	}
	if all == nil {
		return []Path{at}
	}
	return all
}

// TestEveryFieldOfTheExamplesCanBeSet, which changes its own lines to one line, and can be deleted, which takes lines and no comment above them.
func TestEveryFieldOfTheExamplesCanBeSet(t *testing.T) {
	fields := 0
	for _, text := range examples(t) {
		f, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range leaves(nil, f.object) {
			fields++
			got, err := f.Set(path, "new value")
			if err != nil {
				t.Fatalf("%v of\n%s", err, text)
			}
			before, after, made := apart(text, string(got.text))
			if len(made) != 1 || !strings.Contains(made[0], "new value") || len(after) > 0 && strings.Contains(made[0], "#") != strings.Contains(after[0], "#") {
				t.Fatalf("setting %s in line %d makes %q of %q", path, before+1, made, after)
			}
			if got, err = f.Delete(path); err != nil {
				if errors.Is(err, ErrNoField) || errors.Is(err, errLayout) {
					t.Fatalf("%v of\n%s", err, text)
				}
				continue // It is between brackets, on the line of its item, or the only one.
			}
			if _, taken, made := apart(text, string(got.text)); len(made) > 0 || len(taken) == 0 || strings.HasPrefix(strings.TrimSpace(taken[0]), "#") {
				t.Fatalf("deleting %s of\n%s\nmakes %q of %q", path, text, made, taken)
			}
		}
	}
	if fields < 500 {
		t.Errorf("only %d fields are edited", fields)
	}
}

// apart returns how many lines two texts begin with alike, and the lines of each between those and the ones that they end with alike.
func apart(before, after string) (same int, was, is []string) {
	was, is = strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	for same < min(len(was), len(is)) && was[same] == is[same] {
		same++
	}
	return same, was[same:], is[same:]
}
