package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestEveryPlaceOfTheGlossaryExists looks for each file and folder in the last column of the glossary.
func TestEveryPlaceOfTheGlossaryExists(t *testing.T) {
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	places := 0
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, " | ")
		for _, place := range regexp.MustCompile("`([a-z][^`]*/[^`]*)`").FindAllStringSubmatch(columns[len(columns)-1], -1) {
			places++
			if _, err := os.Stat(path.Join("..", place[1])); err != nil {
				t.Errorf("%s does not exist", place[1])
			}
		}
	}
	if places < 60 {
		t.Errorf("only %d places were found", places)
	}
}

// TestEveryPackageIsOnTheMap compares the packages of the layers with the map in architecture.md, on which each is named by its folder.
func TestEveryPackageIsOnTheMap(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "## The layers\n\n```\n")
	layers, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("architecture.md has no map below the heading The layers")
	}
	packages := 0
	root := os.DirFS("..")
	for _, layer := range []string{"cmd", "controllers", "delivery", "gitops", "internal"} {
		err := fs.WalkDir(root, layer, func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			files, err := fs.Glob(root, path.Join(name, "*.go"))
			if err != nil || len(files) == 0 {
				return err
			}
			packages++
			folder := path.Base(name) + "/"
			if layer == "cmd" {
				folder = name + " "
			}
			if !regexp.MustCompile(`(?m)(^|[ /])` + folder).MatchString(layers) {
				t.Errorf("%s is not on the map in architecture.md", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if packages < 100 {
		t.Errorf("only %d packages were found", packages)
	}
}
