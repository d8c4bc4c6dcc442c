package document

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kubeop/kubeop/delivery/few"
)

// Quote quotes the beginning of a text from a file.
func Quote(text string) string {
	const most = 60
	return strconv.Quote(few.Cut(text, most))
}

// Show formats a value of any type from a file, and cuts it if it is long.
func Show(value any) string {
	if text, ok := value.(string); ok {
		return Quote(text)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return cut(fmt.Sprint(value))
	}
	return cut(string(data))
}

// cut limits the length of a message.
func cut(text string) string {
	const most = 400
	return few.Cut(text, most)
}
