package migrate

import (
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/migrate/secrecy"
)

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
	if secrets := secrecy.Withhold(given, ""); len(secrets) > 0 {
		name := a.name + "-values"
		from = append(from, values{"kind": "Secret", "name": name})
		m.report.ask(a.from, "spec.values", fmt.Sprintf("what may be secret is not written: create the Secret %s in the namespace %s, with %s as YAML in its key values.yaml",
			name, a.target, strings.Join(secrets, ", ")))
	}
	put(a.spec, "helm.valuesFrom", from)
	put(a.spec, "helm.values", given)
}
