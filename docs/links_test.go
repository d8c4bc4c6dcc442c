// Package docs holds the tests of the pages beside it.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	// anchored are the characters that stay in an anchor.
	anchored = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages returns README.md, CONTRIBUTING.md and the pages of this folder.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"../README.md", "../CONTRIBUTING.md"}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("found %d pages; there are more", len(found))
	}
	return found
}

// TestLinksLeadSomewhere looks for the file and the heading of each link within the repository.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			followed++
			file, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", page, match[1])
			} else if anchor != "" && !hasAnchor(t, target, anchor) {
				t.Errorf("%s: %s has no heading #%s", page, file, anchor)
			}
		}
	}
	if followed < 100 {
		t.Errorf("only %d links were followed", followed)
	}
}

func hasAnchor(t *testing.T, page, anchor string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `<a name="`+anchor+`">`) {
		return true
	}
	for _, match := range heading.FindAllStringSubmatch(string(text), -1) {
		title := anchored.ReplaceAllString(strings.ToLower(match[1]), "")
		if strings.ReplaceAll(title, " ", "-") == anchor {
			return true
		}
	}
	return false
}
