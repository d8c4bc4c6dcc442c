package migrate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// values are the fields of an object, as in a file.
type values = map[string]any

// fields are the fields of a spec that are not imported yet. What is left in the end has no counterpart, so nothing is dropped silently.
type fields struct {
	of     *object
	left   values
	report *Report
}

func fieldsOf(o *object, r *Report) *fields {
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	if spec == nil {
		spec = values{}
	}
	return &fields{of: o, left: spec, report: r}
}

// take removes a field, such as "install.timeout", and returns its value. ok is false if it is absent or of another type; then it stays.
func take[T any](f *fields, field string) (value T, ok bool) {
	path := strings.Split(field, ".")
	found, _, err := unstructured.NestedFieldNoCopy(f.left, path...)
	if err != nil {
		return value, false
	}
	if value, ok = found.(T); ok {
		unstructured.RemoveNestedField(f.left, path...)
	}
	return value, ok
}

// text takes a text; "" if there is none.
func (f *fields) text(field string) string {
	value, _ := take[string](f, field)
	return value
}

// maps takes a list of objects. A list with something else stays.
func (f *fields) maps(field string) []values {
	list, _, _ := unstructured.NestedSlice(f.left, strings.Split(field, ".")...)
	var all []values
	for _, item := range list {
		fields, ok := item.(values)
		if !ok {
			return nil
		}
		all = append(all, fields)
	}
	if all != nil {
		f.drop(field)
	}
	return all
}

// drop removes fields whose meaning is kept without them.
func (f *fields) drop(names ...string) {
	for _, name := range names {
		unstructured.RemoveNestedField(f.left, strings.Split(name, ".")...)
	}
}

// leaveOut notes that a field is not imported, and removes it.
func (f *fields) leaveOut(field, do string) {
	f.report.leaveOut(f.of, "spec."+field, do)
	f.drop(field)
}

// has reports whether a field is set and not taken.
func (f *fields) has(field string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(f.left, strings.Split(field, ".")...)
	return found && err == nil && value != nil
}

// move takes fields and sets them in a spec of an App. Each pair is a field of the object and one of the App.
func (f *fields) move(to values, pairs ...[2]string) {
	for _, pair := range pairs {
		if value, ok := take[any](f, pair[0]); ok && value != nil {
			put(to, pair[1], value)
		}
	}
}

// moveTimeouts is move for durations that kubeop bounds.
func (f *fields) moveTimeouts(to values, pairs ...[2]string) {
	for _, pair := range pairs {
		text := f.text(pair[0])
		if text == "" {
			continue
		}
		given, err := time.ParseDuration(text)
		switch {
		case err != nil:
			f.report.leaveOut(f.of, "spec."+pair[0], "this is no duration: correct it")
		case given < time.Second:
			f.report.leaveOut(f.of, "spec."+pair[0], "kubeop waits at least one second: the default of kubeop, 5m, applies")
		case given > time.Hour:
			put(to, pair[1], "1h")
			f.report.leaveOut(f.of, "spec."+pair[0], "kubeop waits at most one hour, so the app has 1h")
		default:
			put(to, pair[1], text)
		}
	}
}

// rest notes every field that is left. why has an explanation for some of them, by their path or the beginning of it.
func (f *fields) rest(why map[string]string) {
	leaves(f.left, "", func(field string) {
		do := "it has no counterpart in kubeop"
		for at := field; at != ""; at = at[:max(strings.LastIndex(at, "."), 0)] {
			if known := why[at]; known != "" {
				do = known
				break
			}
		}
		f.report.leaveOut(f.of, "spec."+field, do)
	})
}

// leaves calls each with the path of everything that is no object, and of empty objects never.
func leaves(in values, prefix string, each func(string)) {
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if inner, ok := in[name].(values); ok {
			leaves(inner, prefix+name+".", each)
			continue
		}
		if in[name] != nil {
			each(prefix + name)
		}
	}
}

// put sets a field of a spec. Empty values are left out, as in a file that a person writes.
func put(to values, field string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case values:
		if len(v) == 0 {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	}
	path := strings.Split(field, ".")
	for _, name := range path[:len(path)-1] {
		next, ok := to[name].(values)
		if !ok {
			next = values{}
			to[name] = next
		}
		to = next
	}
	to[path[len(path)-1]] = runtime.DeepCopyJSONValue(value)
}

// shorter returns the shorter of two durations; the other one if one is not given.
func shorter(a, b string) string {
	x, errX := time.ParseDuration(a)
	y, errY := time.ParseDuration(b)
	switch {
	case errX != nil:
		return b
	case errY == nil && y < x:
		return b
	}
	return a
}
