// Package slug makes parts of names of texts, such as the name of a branch of a commit's title.
package slug

import (
	"regexp"
	"strings"
)

var other = regexp.MustCompile("[^a-z0-9]+")

// Of returns a text in lower case with hyphens in place of everything but letters and digits, and at most longest characters of it. Two texts may
// have the same.
func Of(text string, longest int) string {
	text = strings.Trim(other.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.TrimRight(text[:min(len(text), longest)], "-")
}
