package subject

import (
	"fmt"
	"slices"
	"strings"
)

// maxNamed bounds how many objects a message names.
const maxNamed = 5

// Few joins what is said of objects: of the first five, and how many there are more.
func Few(objects []string) string {
	if more := len(objects) - maxNamed; more > 0 {
		objects = append(slices.Clone(objects[:maxNamed]), fmt.Sprintf("and %d objects more", more))
	}
	return strings.Join(objects, "; ")
}
