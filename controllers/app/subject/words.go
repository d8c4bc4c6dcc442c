package subject

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed bounds how many objects a message names.
const maxNamed = 5

// Few joins texts about objects: the first five, and how many more there are.
func Few(objects []string) string {
	if more := len(objects) - maxNamed; more > 0 {
		objects = append(slices.Clone(objects[:maxNamed]), fmt.Sprintf("and %d objects more", more))
	}
	return strings.Join(objects, "; ")
}
