package fieldmanager

import (
	"bytes"
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// alike interns the fields that caches hold, because thousands of similar apps have the same fields.
var alike shared

// shared holds one copy of each text, and its sorted form. Its results must not be changed.
type shared struct {
	mu   sync.Mutex
	seen map[string]fieldText
}

// fieldText is the text of some fields, and its sorted form.
type fieldText struct {
	fields *metav1.FieldsV1
	sorted []byte
}

// Limits: further or longer texts are not interned.
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

// sorted returns the sorted text of fields.
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

// sorted sorts the fields in a text. A sorted text is returned unchanged.
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
