package inputs

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Sensitive returns the texts of a Secret's content that must be masked in messages: the whole content and, because an error may quote a
// part, each value in it if it is YAML, and each line otherwise. Each text is returned as it is and decoded from base64. Content with too
// many values to parse is split where a value may begin.
func Sensitive(content []byte) []string {
	if yamlcheck.Entries(content) != nil {
		return appendPieces(appendLines(appendForms(nil, string(content)), string(content)), string(content))
	}
	var parsed any
	if yamlcheck.Aliases(content) == nil && yaml.Unmarshal(content, &parsed) == nil {
		switch parsed.(type) {
		case map[string]any, []any:
			return appendLeaves(appendForms(nil, string(content)), parsed)
		}
	}
	return appendLines(appendForms(nil, string(content)), string(content))
}

func appendForms(found []string, text string) []string {
	found = append(found, text)
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
		found = appendLines(append(found, string(decoded)), string(decoded))
	}
	return found
}

// appendLines adds each line of a text, and the text without its line breaks.
func appendLines(found []string, text string) []string {
	if !strings.Contains(text, "\n") {
		return found
	}
	found = append(found, strings.ReplaceAll(text, "\n", ""))
	for line := range strings.SplitSeq(text, "\n") {
		found = append(found, strings.TrimSpace(line))
	}
	return found
}

// appendPieces adds the parts of a text that may be values, without parsing the text.
func appendPieces(found []string, text string) []string {
	for piece := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune("[]{},\n", c) }) {
		_, value, _ := strings.Cut(piece, ":")
		for _, part := range []string{piece, value} {
			if part = strings.Trim(part, " \t\r\"'-"); len(part) >= mask.Shortest {
				found = append(found, part)
			}
		}
	}
	return found
}

func appendLeaves(found []string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			found = appendLeaves(found, each)
		}
	case []any:
		for _, each := range v {
			found = appendLeaves(found, each)
		}
	case nil, bool:
	case string:
		found = appendLines(appendForms(found, v), v)
	default:
		found = append(found, fmt.Sprint(v))
	}
	return found
}
