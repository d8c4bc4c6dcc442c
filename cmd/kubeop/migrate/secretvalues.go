package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

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

// withhold removes values that look secret, and returns their paths. A list that contains one is removed as a whole, because lists of values
// are not merged.
func withhold(from values, prefix string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(from)) {
		value := from[name]
		switch v := value.(type) {
		case values:
			found = append(found, withhold(v, prefix+name+".")...)
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

// valuesOf takes the values of a release. Those that look secret are left to a Secret, without which kubeop changes nothing.
func (m *migration) valuesOf(a *app, f *fields) {
	var from []any
	for _, reference := range f.maps("valuesFrom") {
		kept := values{}
		for name, value := range reference {
			switch name {
			case "kind", "name", "valuesKey", "targetPath", "optional":
				kept[name] = value
			default:
				f.report.leaveOut(a.from, "spec.valuesFrom", fmt.Sprintf("%s has no counterpart: write the value in values", printable(name)))
			}
		}
		if kind, name := fmt.Sprint(kept["kind"]), fmt.Sprint(kept["name"]); a.from.generated(kind, name) {
			m.report.ask(a.from, "spec.valuesFrom", fmt.Sprintf("the name of the %s %s changes with its content: write these values into a file beside app.yaml, and name it in helm.valuesFiles",
				kind, printable(name)))
		}
		m.needs(a, "spec.valuesFrom", fmt.Sprint(kept["kind"]), fmt.Sprint(kept["name"]), a.from.GetNamespace())
		from = append(from, kept)
	}
	given, _ := take[values](f, "values")
	if secrets := withhold(given, ""); len(secrets) > 0 {
		name := a.name + "-values"
		from = append(from, values{"kind": "Secret", "name": name})
		m.report.ask(a.from, "spec.values", fmt.Sprintf("what may be secret is not written: create the Secret %s in the namespace %s, with %s as YAML in its key values.yaml",
			name, a.target, strings.Join(secrets, ", ")))
	}
	put(a.spec, "helm.valuesFrom", from)
	put(a.spec, "helm.values", given)
}
