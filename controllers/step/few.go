package step

import (
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/delivery/few"
)

// maxNamed limits how many objects a message names.
const maxNamed = 5

// Few lists objects for a message: the first five, and how many more there are.
func Few[T any](objects []T) string {
	texts := make([]string, 0, len(objects))
	for _, o := range objects {
		texts = append(texts, fmt.Sprint(o))
	}
	return strings.Join(few.Of(texts, maxNamed), "; ")
}
