//go:build e2e

package guards

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// try is a guard with one kind of object.
type try struct {
	guard
	kind string
	// at is the guard's field in the object.
	at string
}

// chosen reports whether the guard is to be tried.
func (g guard) chosen() bool {
	return slices.ContainsFunc(strings.Split(chosen, ","), func(part string) bool { return strings.Contains(g.name, part) })
}

// tries returns a guard for each kind that it is for, the usual one first. usual is the kind of a pod's guard.
func (g guard) tries(usual string) []try {
	if g.control != "pod" {
		return []try{{g, g.control, g.field}}
	}
	all := []try{{g, usual, templates[usual] + g.field}}
	for _, kind := range slices.Sorted(maps.Keys(templates)) {
		if kind != usual && !strings.Contains(g.skip, noKinds) {
			all = append(all, try{g, kind, templates[kind] + g.field})
		}
	}
	return all
}

// by is the tenant that tries it.
func (g guard) by() string { return cmp.Or(g.tenant, attacker) }

// namespace is where the objects are.
func (g guard) namespace() string {
	return v1alpha1.ProjectNamespace(g.by(), cmp.Or(g.project, "shop"))
}

// account is the user name of an account there.
func (g guard) account(name string) string {
	return "system:serviceaccount:" + g.namespace() + ":" + name
}

// good returns the control, and bad what the guard refuses.
func (c try) good(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	return objectIn(t, c.namespace(), hosted(controls[c.kind], c.by()), name)
}

// hosted replaces the attacker's host by that of a tenant.
func hosted(text, tenant string) string {
	return strings.ReplaceAll(text, host, "web."+tenant+".example")
}

func (c try) bad(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	if c.field == "" {
		return objectIn(t, c.namespace(), c.object, name)
	}
	o := c.good(t, name)
	set(t, o.Object, strings.Split(c.at, "/")[1:], c.parsed(t, name))
	return o
}

// parsed is the value of the field.
func (c try) parsed(t *testing.T, name string) any {
	t.Helper()
	return parsed(t, filled(c.value, c.namespace(), name))
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var value any
	must(t, yaml.Unmarshal([]byte(text), &value))
	return whole(value)
}

// patch is a JSON 6902 patch that makes the control what the guard refuses. It replaces all of it if the guard has no field.
func (c try) patch(t *testing.T, name string) string {
	t.Helper()
	if c.field == "" {
		return `[{"op": "replace", "path": "", "value": ` + text(t, c.bad(t, name)) + "}]"
	}
	value, err := json.Marshal(c.parsed(t, name))
	must(t, err)
	return fmt.Sprintf(`[{"op": "add", "path": %q, "value": %s}]`, c.at, value)
}

func object(t *testing.T, text, name string) *unstructured.Unstructured {
	t.Helper()
	return objectIn(t, shop, text, name)
}

func objectIn(t *testing.T, namespace, text, name string) *unstructured.Unstructured {
	t.Helper()
	text = filled(text, namespace, name)
	if strings.Contains(text, "namespace: default") {
		namespace = "default"
	}
	o, err := tenants.Object(namespace, text)
	must(t, err)
	return o
}

// filled replaces the namespace and the name of an object.
func filled(text, namespace, name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "NAMESPACE", namespace), "NAME", name)
}

// set sets a field by its path, whose parents exist.
func set(t *testing.T, in any, path []string, value any) {
	t.Helper()
	key := strings.ReplaceAll(path[0], "~1", "/")
	if list, ok := in.([]any); ok {
		i, err := strconv.Atoi(key)
		must(t, err)
		if len(path) == 1 {
			list[i] = value
			return
		}
		set(t, list[i], path[1:], value)
		return
	}
	fields, ok := in.(map[string]any)
	if !ok {
		t.Fatalf("nothing is at %s", key)
	}
	if len(path) == 1 {
		fields[key] = value
		return
	}
	set(t, fields[key], path[1:], value)
}

// value returns what is at a path, nil for nothing.
func value(in any, path []string) any {
	if len(path) == 0 {
		return in
	}
	switch v := in.(type) {
	case map[string]any:
		return value(v[strings.ReplaceAll(path[0], "~1", "/")], path[1:])
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) {
			return value(v[i], path[1:])
		}
	}
	return nil
}

// whole turns whole numbers into integers, as the API server's client expects.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	}
	return value
}
