package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/budget"
)

// objectSet gathers the objects of a source and what is wrong with it. As many problems are kept as are told, so that one
// push can mend them all; a source can be made of nothing else.
type objectSet struct {
	repeats  bool       // the same object may come more than once
	limits   budget.App // the default ones where they are not set
	taken    weight     // of the text that was read
	full     bool       // a limit was passed: nothing more is read
	objects  []*unstructured.Unstructured
	problems []error
	more     int // how many problems were not kept
	seen     map[identity][]sighting
}

// identity of an object within its namespace. The version is no part of it: the API server stores an object once.
type identity struct {
	kind schema.GroupKind
	name string
}

type sighting struct {
	namespace, place string
}

// add takes the value of one document found at place.
func (s *objectSet) add(place string, value any) {
	if value == nil {
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		s.refuse(place, errors.New("not a Kubernetes object: it must be a mapping with apiVersion, kind and metadata"))
		return
	}
	expanded, err := Expand(&unstructured.Unstructured{Object: object})
	if err != nil {
		s.refuse(place, err)
		return
	}
	for _, o := range expanded {
		s.addOne(place, o)
	}
}

func (s *objectSet) addOne(place string, object *unstructured.Unstructured) {
	if err := checkShape(object.Object); err != nil {
		s.refuse(place, err)
		return
	}
	if earlier, ok := s.repeated(place, object); ok && !s.repeats {
		s.refuse(place, fmt.Errorf("%s/%s is already at %s", object.GetKind(), object.GetName(), earlier))
		return
	}
	s.objects = append(s.objects, object)
}

// repeated returns where the object was seen before. An unset namespace becomes the app's, so it may be any.
func (s *objectSet) repeated(place string, object *unstructured.Unstructured) (string, bool) {
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

func (s *objectSet) refuse(place string, why error) {
	if len(s.problems) > maxProblems {
		s.more++
		return
	}
	s.problems = append(s.problems, fmt.Errorf("%s: %w", place, why))
}

func (s *objectSet) result() ([]*unstructured.Unstructured, error) {
	if is, limit := int64(len(s.objects)), s.bounds().Objects; is > limit {
		s.problems = append(s.problems, exceeded{&budget.Exceeded{Field: budget.AppObjects, What: "objects of the app", Is: is, Limit: limit}})
	}
	if more := len(s.problems) + s.more - maxProblems; more > 0 {
		s.problems = append(s.problems[:maxProblems], fmt.Errorf("and %d more", more))
	}
	if len(s.problems) > 0 {
		return nil, errors.Join(s.problems...)
	}
	return s.objects, nil
}
