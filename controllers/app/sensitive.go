package app

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/render"
)

// sensitiveIn returns what no message may show of a Secret's content: the whole of it and, where it is YAML, each value in
// it, else each of its lines, because what fails may show just that one; each as it is, as base64, as a Secret has it, and
// without base64, and each of these as it is within quotes.
func sensitiveIn(content []byte) []string {
	var parsed any
	if render.CheckAliases(content) == nil && yaml.Unmarshal(content, &parsed) == nil {
		switch parsed.(type) {
		case map[string]any, []any:
			return appendLeaves(appendForms(nil, string(content)), parsed)
		}
	}
	return appendLines(appendForms(nil, string(content)), string(content))
}

func appendForms(found []string, text string) []string {
	found = appendQuoted(append(found, text, base64.StdEncoding.EncodeToString([]byte(text))), text)
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && utf8.Valid(decoded) {
		found = appendLines(appendQuoted(append(found, string(decoded)), string(decoded)), string(decoded))
	}
	return found
}

// appendQuoted adds a value as Go and JSON write it within quotes, where that is another text: so it stands in what the API
// server says of a field, and in differences.
func appendQuoted(found []string, value string) []string {
	asJSON, _ := json.Marshal(value) // A text can be encoded.
	for _, quoted := range []string{strconv.Quote(value), string(asJSON)} {
		if inner := quoted[1 : len(quoted)-1]; inner != value {
			found = append(found, inner)
		}
	}
	return found
}

// appendLines adds the lines of a text, and the text in one line.
func appendLines(found []string, text string) []string {
	if !strings.Contains(text, "\n") {
		return found
	}
	found = append(found, strings.ReplaceAll(text, "\n", ""))
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		found = appendQuoted(append(found, line), line)
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

// shortest is the length below which a value is not hidden: it would blot out ordinary words.
const shortest = 4

// maskOf returns a function that hides values in a text, the longest first: one may be a part of another.
func maskOf(sensitive []string) func(string) string {
	hidden := slices.DeleteFunc(slices.Clone(sensitive), func(value string) bool { return len(value) < shortest })
	slices.SortStableFunc(hidden, func(a, b string) int { return len(b) - len(a) })
	return func(text string) string {
		for _, value := range hidden {
			text = strings.ReplaceAll(text, value, "***")
		}
		return text
	}
}
