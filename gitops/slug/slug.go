// Package slug makes parts of names of texts, such as the name of a branch of a commit's title.
package slug

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	other = regexp.MustCompile("[^a-z0-9]+")
	// name is what names of objects may be that become names of DNS: RFC 1035.
	name = regexp.MustCompile("^[a-z]([-a-z0-9]*[a-z0-9])?$")
)

// Of returns a text in lower case with hyphens in place of everything but letters and digits, and at most longest characters of it. Two texts may
// have the same.
func Of(text string, longest int) string {
	text = strings.Trim(other.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.TrimRight(text[:min(len(text), longest)], "-")
}

// Name returns a text that is a name of at most longest characters by RFC 1035 as it is. It makes such a name of any other text, with a prefix if that does
// not begin with a letter.
func Name(text, prefix string, longest int) string {
	if len(text) <= longest && name.MatchString(text) {
		return text
	}
	made := Of(text, longest)
	if made == "" || made[0] < 'a' {
		made = strings.TrimSuffix(prefix+"-"+made, "-")
	}
	return strings.TrimRight(made[:min(len(made), longest)], "-")
}

// Free returns the name, with the first number from 2 on behind it that is not taken if the name itself is. The name is shortened so that both have
// at most longest characters together.
func Free(name string, longest int, taken func(string) bool) string {
	for i, wanted := 2, name; taken(name); i++ {
		suffix := fmt.Sprintf("-%d", i)
		name = wanted[:min(len(wanted), longest-len(suffix))] + suffix
	}
	return name
}
