// Package secrecy keeps values that may be secret out of files.
package secrecy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

type values = map[string]any

var (
	// secretName matches names of values that are usually secret, and namesSecret those that only name a Secret.
	secretName  = regexp.MustCompile(`(?i)(passwo?r?d|passphrase|secret|token|api_?-?key|access_?-?key|private_?-?key|secret_?-?key|credentials?|connection_?-?string)$`)
	namesSecret = regexp.MustCompile(`(?i)(^existing|pull_?-?secrets?$)`)
	// secretText matches values that are secret whatever their name: a URL with a password, and a private key.
	secretText = regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY`)
)

// isSecret reports whether a value is to be kept out of files, by its name and by what it is.
func isSecret(name string, value any) bool {
	text, ok := value.(string)
	switch {
	case !ok || text == "":
		return false
	case secretText.MatchString(text):
		return true
	}
	return secretName.MatchString(name) && !namesSecret.MatchString(name) && !strings.HasPrefix(text, "${")
}

// Withhold removes values that look secret, and returns their paths. A list that contains one is removed as a whole, because lists of values
// are not merged.
func Withhold(from values, prefix string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(from)) {
		value := from[name]
		switch v := value.(type) {
		case values:
			found = append(found, Withhold(v, prefix+name+".")...)
		case []any:
			if holdsSecret(v) {
				found = append(found, prefix+name)
				delete(from, name)
			}
		default:
			if isSecret(name, value) {
				found = append(found, prefix+name)
				delete(from, name)
			}
		}
	}
	return found
}

// holdsSecret reports whether a list contains a secret.
func holdsSecret(list []any) bool {
	return slices.ContainsFunc(list, func(item any) bool {
		switch v := item.(type) {
		case []any:
			return holdsSecret(v)
		case values:
			return holdsSecretIn(v)
		}
		return isSecret("", item)
	})
}

// holdsSecretIn is holdsSecret for an item with fields, such as a variable with a name and a value.
func holdsSecretIn(item values) bool {
	if name, ok := item["name"].(string); ok && isSecret(name, item["value"]) {
		return true
	}
	for name, value := range item {
		if isSecret(name, value) {
			return true
		}
		if list, ok := value.([]any); ok && holdsSecret(list) {
			return true
		}
		if inner, ok := value.(values); ok && holdsSecretIn(inner) {
			return true
		}
	}
	return false
}
