// Package objectset collects the objects of a source. It checks that each has the shape of a Kubernetes object, expands Lists, and refuses
// duplicates.
package objectset

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set collects the objects of a source and their problems. An object may not occur twice. Up to 20 problems are kept, so that one push can
// fix them all; the others are only counted. The zero value is ready.
type Set struct {
	objects  []*unstructured.Unstructured
	problems []error
	more     int // how many problems were not kept
	seen     map[identity][]sighting
}

// maxProblems is the number of errors reported at once.
const maxProblems = 20

// identity of an object within its namespace. It does not include the version, because the API server stores one object for all versions.
type identity struct {
	kind schema.GroupKind
	name string
}

type sighting struct {
	namespace, place string
}

// Add adds the value of one document found at place: an object, a List of objects, or nothing.
func (s *Set) Add(place string, value any) {
	if value == nil {
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		s.Refuse(place, errors.New("not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"))
		return
	}
	expanded, err := Expand(&unstructured.Unstructured{Object: object})
	if err != nil {
		s.Refuse(place, err)
		return
	}
	for _, o := range expanded {
		s.addOne(place, o)
	}
}

func (s *Set) addOne(place string, object *unstructured.Unstructured) {
	if err := checkShape(object.Object); err != nil {
		s.Refuse(place, err)
		return
	}
	if earlier, ok := s.repeated(place, object); ok {
		s.Refuse(place, fmt.Errorf("%s/%s is already at %s: keep one", object.GetKind(), object.GetName(), earlier))
		return
	}
	s.objects = append(s.objects, object)
}

// repeated returns the place where the object occurred before. An unset namespace becomes the app's, so it may equal any other.
func (s *Set) repeated(place string, object *unstructured.Unstructured) (string, bool) {
	id := identity{object.GroupVersionKind().GroupKind(), object.GetName()}
	namespace := object.GetNamespace()
	i := slices.IndexFunc(s.seen[id], func(o sighting) bool {
		return o.namespace == namespace || o.namespace == "" || namespace == ""
	})
	if i >= 0 {
		return s.seen[id][i].place, true
	}
	if s.seen == nil {
		s.seen = map[identity][]sighting{}
	}
	s.seen[id] = append(s.seen[id], sighting{namespace, place})
	return "", false
}

// Keep adds an object that a Set has checked before.
func (s *Set) Keep(object *unstructured.Unstructured) { s.objects = append(s.objects, object) }

// Refuse adds a problem at a place of the source.
func (s *Set) Refuse(place string, why error) { s.Fail(fmt.Errorf("%s: %w", place, why)) }

// Fail adds a problem that names its place itself.
func (s *Set) Fail(problem error) {
	if len(s.problems) > maxProblems {
		s.more++
		return
	}
	s.problems = append(s.problems, problem)
}

// Len is the number of objects so far.
func (s *Set) Len() int { return len(s.objects) }

// Overfull reports that more problems were found than are reported.
func (s *Set) Overfull() bool { return len(s.problems) > maxProblems }

// Result returns the objects, or else all problems as one error.
func (s *Set) Result() ([]*unstructured.Unstructured, error) {
	if more := len(s.problems) + s.more - maxProblems; more > 0 {
		s.problems = append(s.problems[:maxProblems], fmt.Errorf("and %d more", more))
	}
	if len(s.problems) > 0 {
		return nil, errors.Join(s.problems...)
	}
	return s.objects, nil
}
