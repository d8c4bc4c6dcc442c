package kube

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// Mapper maps kinds to resources by the API server's discovery, and caches the results until it is reset. Unlike the mapper that it wraps,
// it accepts a kind only in the spelling of discovery. Safe for concurrent use.
type Mapper struct {
	meta.ResettableRESTMapper
	served resources

	mu    sync.RWMutex
	found map[kindVersion]*meta.RESTMapping
	lacks map[schema.GroupVersionKind][]string
}

// resources is the part of discovery that lists the groups, and the resources of one group and version.
type resources interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error)
}

// MisspelledKindError is a meta.NoKindMatchError for a kind that is served with another spelling.
type MisspelledKindError struct {
	*meta.NoKindMatchError
	// Meant is the kind as discovery spells it.
	Meant string
}

// Error names both spellings.
func (e *MisspelledKindError) Error() string {
	return fmt.Sprintf("%v; did you mean %s?", e.NoKindMatchError, e.Meant)
}

// Unwrap lets meta.IsNoMatchError find the error.
func (e *MisspelledKindError) Unwrap() error { return e.NoKindMatchError }

// kindVersion is a kind and the requested version of it.
type kindVersion struct {
	kind    schema.GroupKind
	version string
}

var _ meta.ResettableRESTMapper = (*Mapper)(nil)

// NewMapper returns a Mapper that requests each kind when it is first used.
func NewMapper(served discovery.CachedDiscoveryInterface) *Mapper {
	return &Mapper{
		ResettableRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(served), served: served,
		found: map[kindVersion]*meta.RESTMapping{}, lacks: map[schema.GroupVersionKind][]string{},
	}
}

// RESTMapping implements meta.RESTMapper. For a kind that is spelled differently, the error is a *MisspelledKindError. The error is a
// meta.NoKindMatchError only if the kind is known not to be served, not if discovery of its group failed.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 {
		return m.exactly(kind, versions...)
	}
	key := kindVersion{kind, versions[0]}
	m.mu.RLock()
	known, memory := m.found[key], m.found
	m.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	mapping, err := m.exactly(kind, versions...)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	memory[key] = mapping // If the mapper was reset meanwhile, this writes to the old map, which is not used any more.
	return mapping, nil
}

// exactly looks a kind up in the wrapped mapper, and checks the spelling with discovery: the wrapped mapper also accepts each kind in lower
// case, and its List, and an informer for one of those would never get an object.
func (m *Mapper) exactly(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := m.ResettableRESTMapper.RESTMapping(kind, versions...)
	switch {
	case err == nil:
	case !meta.IsNoMatchError(err):
		return nil, err
	case len(versions) == 0:
		return nil, cmp.Or(m.undiscovered(kind.Group), err)
	}
	noMatch := &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	version := schema.GroupVersion{Group: kind.Group}
	if found == nil {
		version.Version = versions[0]
	} else {
		version = found.GroupVersionKind.GroupVersion()
	}
	served, failed := m.served.ServerResourcesForGroupVersion(version.String())
	switch {
	case found == nil && unserved(failed):
		return nil, noMatch
	case failed != nil:
		return nil, discoveryError(version.String(), failed)
	}
	for _, r := range served.APIResources {
		switch {
		case strings.Contains(r.Name, "/"):
		case found != nil && r.Kind == kind.Kind && r.Name == found.Resource.Resource:
			return found, nil
		case strings.EqualFold(r.Kind, kind.Kind), strings.EqualFold(r.Name, kind.Kind), strings.EqualFold(r.Kind+"List", kind.Kind):
			return nil, &MisspelledKindError{noMatch, r.Kind}
		}
	}
	return nil, noMatch
}

// undiscovered returns why discovery of a version of the group failed, or nil. Discovery fails, for example, while the server of an
// aggregated API is down: nobody knows then whether it serves a kind.
func (m *Mapper) undiscovered(group string) error {
	all, err := m.served.ServerGroups()
	if err != nil {
		return fmt.Errorf("finding out which groups are served: %w", err)
	}
	for _, g := range all.Groups {
		if g.Name != group {
			continue
		}
		for _, v := range g.Versions {
			if _, err := m.served.ServerResourcesForGroupVersion(v.GroupVersion); err != nil && !unserved(err) {
				return discoveryError(v.GroupVersion, err)
			}
		}
	}
	return nil
}

// unserved reports whether discovery answered that it has no such group and version.
func unserved(err error) bool {
	return errors.Is(err, memory.ErrCacheNotFound) || apierrors.IsNotFound(err)
}

func discoveryError(version string, err error) error {
	return fmt.Errorf("finding out what is served of %s: %w", version, err)
}

// Reset implements meta.ResettableRESTMapper.
func (m *Mapper) Reset() {
	m.ResettableRESTMapper.Reset()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found, m.lacks = map[kindVersion]*meta.RESTMapping{}, map[schema.GroupVersionKind][]string{}
}
