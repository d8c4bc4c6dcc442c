package differ

import (
	"regexp"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector selects objects as kustomize does: its fields are regular expressions that match the whole field; an empty one matches any
// value.
type Selector struct {
	fields              [selectorFields]*regexp.Regexp
	labels, annotations labels.Selector
}

// selectorFields is how many fields of an object a selector can name by a pattern.
const selectorFields = 5

// ReadSelector parses a selector; nil selects everything.
func ReadSelector(t *kustomize.Selector) (s Selector, err error) {
	if t == nil {
		return s, nil
	}
	for i, text := range [selectorFields]string{t.Group, t.Version, t.Kind, t.Namespace, t.Name} {
		if text == "" {
			continue
		}
		if s.fields[i], err = regexp.Compile("^(?:" + text + ")$"); err != nil {
			return s, err
		}
	}
	if s.labels, err = labels.Parse(t.LabelSelector); err != nil {
		return s, err
	}
	s.annotations, err = labels.Parse(t.AnnotationSelector)
	return s, err
}

// Selects reports whether the selector selects an object.
func (s *Selector) Selects(u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	for i, text := range [selectorFields]string{kind.Group, kind.Version, kind.Kind, u.GetNamespace(), u.GetName()} {
		if pattern := s.fields[i]; pattern != nil && !pattern.MatchString(text) {
			return false
		}
	}
	return (s.labels == nil || s.labels.Matches(labels.Set(u.GetLabels()))) &&
		(s.annotations == nil || s.annotations.Matches(labels.Set(u.GetAnnotations())))
}
