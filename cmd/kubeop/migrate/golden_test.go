package migrate

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// section begins the outcome of a case in a file of testdata.
const section = "=== "

// sections are what the cases of a table wrote and said, each as a whole, in one file of testdata.
type sections struct {
	file string
	want map[string]string
	got  map[string]string
}

// sectionsOf reads a file of testdata. With -update it is written when the test ends.
func sectionsOf(t *testing.T, name string) *sections {
	t.Helper()
	s := &sections{file: filepath.Join("testdata", name), want: map[string]string{}, got: map[string]string{}}
	text, err := os.ReadFile(s.file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, part := range strings.Split("\n"+string(text), "\n"+section)[1:] {
		title, outcome, _ := strings.Cut(part, "\n")
		s.want[title] = outcome
	}
	t.Cleanup(func() {
		if !*update {
			return
		}
		var all strings.Builder
		for _, title := range slices.Sorted(maps.Keys(s.got)) {
			all.WriteString(section + title + "\n" + s.got[title] + "\n")
		}
		if err := os.WriteFile(s.file, []byte(all.String()), 0o644); err != nil {
			t.Error(err)
		}
	})
	return s
}

// compare holds a case to its section.
func (s *sections) compare(t *testing.T, title, got string) {
	t.Helper()
	got = strings.TrimRight(got, "\n") + "\n"
	if s.got[title] = got; *update {
		return
	}
	if diff := cmp.Diff(strings.TrimRight(s.want[title], "\n")+"\n", got); diff != "" {
		t.Errorf("%s of %s (-want +got):\n%s", title, s.file, diff)
	}
}
