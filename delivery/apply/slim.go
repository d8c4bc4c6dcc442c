package apply

import (
	"bytes"
	"encoding/json"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// Slim takes from an object's metadata what nobody here reads before a cache holds it: annotations, but for what protects it
// from deletion or allows it, and what SlimFields takes. Tenants write both, as large as they like.
func Slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetAnnotations(allowing(o, protecting(o)))
	}
	return SlimFields(object)
}

// The annotations that Slim leaves, shared by all objects that carry them.
var (
	confirmed = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneConfirm}
	disabled  = map[string]string{v1alpha1.PruneAnnotation: v1alpha1.PruneDisabled}
)

// protecting returns of an object's annotations those that protect it.
func protecting(o metav1.Object) map[string]string {
	switch inventory.AnnotatedPolicy(o) {
	case v1alpha1.PolicyConfirm:
		return confirmed
	case v1alpha1.PolicyDisabled:
		return disabled
	}
	return nil
}

// allowing adds to annotations those of a namespace that say about its deletion.
func allowing(o metav1.Object, kept map[string]string) map[string]string {
	for _, name := range []string{v1alpha1.AllowDeletionAnnotation, v1alpha1.VolumesRetainedAnnotation} {
		value, ok := o.GetAnnotations()[name]
		if !ok {
			continue
		}
		kept = maps.Clone(kept) // What protects is shared.
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = value
	}
	return kept
}

// SlimFields takes from an object's metadata the fields that belong to other controllers, but for the one that scaling writes.
// Fields that many objects have alike are held once.
func SlimFields(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	var kept []metav1.ManagedFieldsEntry
	for _, f := range o.GetManagedFields() {
		if owns(f) || byHand(f) || scales(f) {
			f.FieldsV1 = alike.one(f.FieldsV1)
			kept = append(kept, f)
		}
	}
	o.SetManagedFields(kept)
	return object, nil
}

// alike are the fields that caches hold. Apps that are made alike have the same, and there are thousands.
var alike shared

// shared holds one copy of each text, and its sorted form. Nobody may change what it gives.
type shared struct {
	mu   sync.Mutex
	seen map[string]fieldText
}

// fieldText are fields, and their text sorted.
type fieldText struct {
	fields *metav1.FieldsV1
	sorted []byte
}

// What of more texts, or longer ones, is held may be there twice.
const (
	maxShared     = 4096
	maxSharedSize = 4 << 10
)

func (s *shared) one(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if len(fields.GetRawBytes()) > maxSharedSize {
		return fields
	}
	return s.text(fields).fields
}

// sorted returns the text of fields, sorted.
func (s *shared) sorted(fields *metav1.FieldsV1) []byte {
	if raw := fields.GetRawBytes(); len(raw) > maxSharedSize {
		return sorted(raw)
	}
	return s.text(fields).sorted
}

func (s *shared) text(fields *metav1.FieldsV1) fieldText {
	raw := fields.GetRawBytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.seen[string(raw)]; ok {
		return known
	}
	if s.seen == nil || len(s.seen) == maxShared {
		s.seen = map[string]fieldText{}
	}
	found := fieldText{fields: fields, sorted: sorted(raw)}
	s.seen[string(raw)] = found
	return found
}

// sorted sorts the fields of a text; that of fields which are sorted is the same text.
func sorted(raw []byte) []byte {
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return raw
	}
	// What was decoded can be encoded.
	encoded, _ := json.Marshal(decoded)
	if bytes.Equal(encoded, raw) {
		return raw
	}
	return encoded
}
