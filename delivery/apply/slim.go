package apply

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Slim takes from an object's metadata what nobody here reads before a cache holds it: annotations, but for what protects it
// from deletion, and what SlimFields takes. Tenants write both, as large as they like.
func Slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetAnnotations(protecting(o))
	}
	return SlimFields(object)
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

// shared holds one copy of each text. Nobody may change what it gives.
type shared struct {
	mu   sync.Mutex
	seen map[string]*metav1.FieldsV1
}

// What of more texts, or longer ones, is held may be there twice.
const (
	maxShared     = 4096
	maxSharedSize = 8 << 10
)

func (s *shared) one(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	raw := fields.GetRawBytes()
	if len(raw) > maxSharedSize {
		return fields
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.seen[string(raw)]; ok {
		return known
	}
	if s.seen == nil || len(s.seen) == maxShared {
		s.seen = map[string]*metav1.FieldsV1{}
	}
	s.seen[string(raw)] = fields
	return fields
}
