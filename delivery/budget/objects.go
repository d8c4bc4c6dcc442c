package budget

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Check finds that objects are more than an app may hold, and names the object that was one too many; the error is a *Exceeded.
// Their size is that as JSON, more or less.
func (l App) Check(objects []*unstructured.Unstructured) error {
	if over := l.TooMany(len(objects)); over != nil {
		return over
	}
	w := Weight{}
	for _, o := range objects {
		w.add(o.Object)
		if over := l.Over(w, "the objects of the app up to this one, as rendered"); over != nil {
			return fmt.Errorf("%s/%s: %w", o.GetKind(), o.GetName(), over)
		}
	}
	return nil
}

// TooMany is a *Exceeded where an app may not hold so many objects, else nil.
func (l App) TooMany(objects int) error {
	if is := int64(objects); is > l.Objects {
		return &Exceeded{Field: AppObjects, What: "objects of the app", Is: is, Limit: l.Objects}
	}
	return nil
}

// Over is a *Exceeded where a weight is over the limits, else nil. What names the weighed for people.
func (l App) Over(w Weight, what string) error {
	switch {
	case w.Bytes > l.Bytes:
		return &Exceeded{Field: AppBytes, What: what, Is: w.Bytes, Limit: l.Bytes}
	case w.Values > l.Values:
		return &Exceeded{Field: AppValues, What: what + ", counted by mappings, lists and values", Is: w.Values, Limit: l.Values}
	}
	return nil
}

const (
	// PlainTemplate is how large the template of a workload's pods may be to count like anything else, in bytes.
	PlainTemplate = 16 << 10
	// templateCopies is how often Kubernetes may copy a template: into ten ReplicaSets or ControllerRevisions of before, and each of the pods that
	// a project has by default.
	templateCopies = 60
)

// Size is what objects take in the API server's store, more or less, in bytes: that as JSON, and that of the copies of large templates.
func Size(objects []*unstructured.Unstructured) int64 {
	w := Weight{}
	for _, o := range objects {
		w.add(o.Object)
		for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}} {
			if template, ok, _ := unstructured.NestedFieldNoCopy(o.Object, path...); ok {
				t := Weight{}
				t.add(template)
				w.Bytes += templateCopies * max(0, t.Bytes-PlainTemplate)
			}
		}
	}
	return w.Bytes
}

// Weight is what objects, or the text of manifests, take: bytes, and mappings, lists, keys and scalars.
type Weight struct{ Bytes, Values int64 }

// add adds parsed JSON.
func (w *Weight) add(value any) {
	w.Values++
	switch v := value.(type) {
	case map[string]any:
		w.Bytes += 2
		for key, inner := range v {
			w.Values++
			w.Bytes += int64(len(key)) + 4
			w.add(inner)
		}
	case []any:
		w.Bytes += 2
		for _, inner := range v {
			w.Bytes++
			w.add(inner)
		}
	case string:
		w.Bytes += int64(len(v)) + 2
	case int64:
		w.Bytes += int64(len(strconv.FormatInt(v, 10)))
	default:
		w.Bytes += 4
	}
}
