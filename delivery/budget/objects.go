package budget

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Check returns an *Exceeded if the objects exceed the limits of an app, and names the first object above a limit. The size is
// approximately that of the objects as JSON.
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

// TooMany returns an *Exceeded if an app may not have so many objects, otherwise nil.
func (l App) TooMany(objects int) error {
	if is := int64(objects); is > l.Objects {
		return &Exceeded{Field: AppObjects, What: "objects of the app", Is: is, Limit: l.Objects}
	}
	return nil
}

// Over returns an *Exceeded if a weight is above the limits, otherwise nil. what describes the objects or text in the message.
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
	// PlainTemplate is the size up to which the pod template of a workload counts once, in bytes.
	PlainTemplate = 16 << 10
	// templateCopies is how often Kubernetes may copy a template: into ten earlier ReplicaSets or ControllerRevisions, and into each of the
	// pods that a project may have by default.
	templateCopies = 60
)

// Size is the approximate size of objects in the API server's store, in bytes: as JSON, with the copies of large pod templates.
func Size(objects []*unstructured.Unstructured) int64 {
	w := Weight{}
	for _, o := range objects {
		w.add(o.Object)
		for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}} {
			template, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
			t := Weight{}
			t.add(template)
			w.Bytes += templateCopies * max(0, t.Bytes-PlainTemplate)
		}
	}
	return w.Bytes
}

// Weight is the size of objects or manifests: bytes, and values (mappings, lists, keys and scalars).
type Weight struct{ Bytes, Values int64 }

// add adds the weight of parsed JSON.
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
