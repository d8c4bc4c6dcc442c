package step

import (
	"fmt"
	"strings"
)

// maxNamed bounds how many objects a message names.
const maxNamed = 5

// Few lists for a message what happened to objects: the first five, and how many more there are.
func Few[T any](objects []T) string {
	texts := make([]string, 0, maxNamed+1)
	for _, o := range objects[:min(len(objects), maxNamed)] {
		texts = append(texts, fmt.Sprint(o))
	}
	if more := len(objects) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d objects more", more))
	}
	return strings.Join(texts, "; ")
}
