// Package reference reads references of images.
package reference

import "strings"

// Name returns a reference without its tag and digest.
func Name(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name
}
