package step

import (
	"fmt"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

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

// Count formats a number of things, such as "1 app" and "1,200 apps".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Number(n) + " " + thing + "s"
}

// Number formats a number with separated thousands.
func Number(n int) string { return message.NewPrinter(language.English).Sprint(n) }
