package document

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Quote quotes the beginning of a text from a file.
func Quote(text string) string {
	const most = 60
	runes := []rune(text)
	if len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
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
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}

// Printable replaces control characters and invalid UTF-8, so that a message stays on one line. Names and keys in a commit may contain any
// bytes.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}
