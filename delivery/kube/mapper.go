package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// Mapper knows what the API server serves each kind as, from discovery, until it is reset. Unlike the mapper below it, which
// searches all that is served each time, it remembers what it found. Safe for concurrent use.
type Mapper struct {
	meta.ResettableRESTMapper

	mu    sync.RWMutex
	found map[asked]*meta.RESTMapping
}

// asked is a kind and the version of it that is wanted.
type asked struct {
	kind    schema.GroupKind
	version string
}

var _ meta.ResettableRESTMapper = (*Mapper)(nil)

// NewMapper returns a Mapper that asks when it is asked.
func NewMapper(served discovery.CachedDiscoveryInterface) *Mapper {
	return &Mapper{ResettableRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(served), found: map[asked]*meta.RESTMapping{}}
}

// RESTMapping implements meta.RESTMapper.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.ResettableRESTMapper.RESTMapping(kind, versions...)
	}
	key := asked{kind, versions[0]}
	m.mu.RLock()
	known, memory := m.found[key], m.found
	m.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	mapping, err := m.ResettableRESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	memory[key] = mapping // Of a reset in between it is nobody's memory any more.
	return mapping, nil
}

// Reset implements meta.ResettableRESTMapper.
func (m *Mapper) Reset() {
	m.ResettableRESTMapper.Reset()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = map[asked]*meta.RESTMapping{}
}
