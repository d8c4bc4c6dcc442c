package render

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Renderer makes objects within the limits of an app. The functions Build, Dir and Raw are those of one with the default limits.
type Renderer struct{ Limits budget.App }

func usual() Renderer { return Renderer{budget.Default().App} }

// exceeded is an ErrTooLarge that is a *budget.Exceeded.
type exceeded struct{ *budget.Exceeded }

// Is reports that it is an ErrTooLarge.
func (e exceeded) Is(target error) bool { return target == ErrTooLarge }

// Unwrap returns the limit that was passed.
func (e exceeded) Unwrap() error { return e.Exceeded }

// Check finds that objects are more than an app may hold, as an ErrTooLarge that is a *budget.Exceeded and names the object that was
// one too many. Their size is that as JSON, more or less.
func (r Renderer) Check(objects []*unstructured.Unstructured) error {
	if is := int64(len(objects)); is > r.Limits.Objects {
		return exceeded{&budget.Exceeded{Field: budget.AppObjects, What: "objects of the app", Is: is, Limit: r.Limits.Objects}}
	}
	w := weight{}
	for _, o := range objects {
		if w.add(o.Object); w.bytes > r.Limits.Bytes || w.values > r.Limits.Values {
			over := r.exceeded(w, "the objects of the app up to this one, as rendered")
			return fmt.Errorf("%s/%s: %w", o.GetKind(), o.GetName(), over)
		}
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
	w := weight{}
	for _, o := range objects {
		w.add(o.Object)
		for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate"}} {
			if template, ok, _ := unstructured.NestedFieldNoCopy(o.Object, path...); ok {
				t := weight{}
				t.add(template)
				w.bytes += templateCopies * max(0, t.bytes-PlainTemplate)
			}
		}
	}
	return w.bytes
}

// weight is what objects, or text, take.
type weight struct{ bytes, values int64 }

// add adds parsed JSON.
func (w *weight) add(value any) {
	w.values++
	switch v := value.(type) {
	case map[string]any:
		w.bytes += 2
		for key, inner := range v {
			w.values++
			w.bytes += int64(len(key)) + 4
			w.add(inner)
		}
	case []any:
		w.bytes += 2
		for _, inner := range v {
			w.bytes++
			w.add(inner)
		}
	case string:
		w.bytes += int64(len(v)) + 2
	case int64:
		w.bytes += int64(len(strconv.FormatInt(v, 10)))
	default:
		w.bytes += 4
	}
}

// take counts the text of a file before it is parsed, and refuses one that is over a limit. Nothing more is read then.
func (s *objectSet) take(place string, data []byte) bool {
	limits := s.bounds()
	s.taken.bytes += int64(len(data))
	s.taken.values += yamlcheck.MaxValues(data)
	if s.taken.bytes <= limits.Bytes && s.taken.values <= limits.Values {
		return true
	}
	s.full = true
	s.refuse(place, Renderer{limits}.exceeded(s.taken, "the manifests of the app up to this file"))
	return false
}

// bounds are the limits of the set.
func (s *objectSet) bounds() budget.App {
	if s.limits == (budget.App{}) {
		return usual().Limits
	}
	return s.limits
}

// exceeded is the error that says which limit a weight is over.
func (r Renderer) exceeded(w weight, what string) error {
	if w.bytes > r.Limits.Bytes {
		return exceeded{&budget.Exceeded{Field: budget.AppBytes, What: what, Is: w.bytes, Limit: r.Limits.Bytes}}
	}
	return exceeded{&budget.Exceeded{Field: budget.AppValues, What: what + ", counted by mappings, lists and values", Is: w.values, Limit: r.Limits.Values}}
}
