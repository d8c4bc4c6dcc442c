package kube

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// needed are the verbs that kubeop needs for the objects of apps: to apply, to watch and to delete them.
var needed = []string{"get", "list", "watch", "patch", "delete"}

// UnkeptKindError is about a kind whose objects an app cannot own, because the API server does not serve all verbs for it. For example, a
// TokenReview is answered and not stored.
type UnkeptKindError struct {
	Kind schema.GroupVersionKind
	// Lacks are the verbs that are not served.
	Lacks []string
}

// Error names the kind and the verbs.
func (e *UnkeptKindError) Error() string {
	return fmt.Sprintf("the API server cannot %s objects of the kind %s %s", strings.Join(e.Lacks, ", "), e.Kind.GroupVersion(), e.Kind.Kind)
}

// Kept returns an *UnkeptKindError if the API server does not serve all verbs that kubeop needs for the objects of apps.
func (m *Mapper) Kept(mapping *meta.RESTMapping) error {
	kind := mapping.GroupVersionKind
	m.mu.RLock()
	lacks, known := m.lacks[kind]
	m.mu.RUnlock()
	if !known {
		var err error
		if lacks, err = m.lackingVerbs(mapping); err != nil {
			return err
		}
		m.mu.Lock()
		m.lacks[kind] = lacks
		m.mu.Unlock()
	}
	if len(lacks) > 0 {
		return &UnkeptKindError{kind, lacks}
	}
	return nil
}

// lackingVerbs returns which of the needed verbs the API server does not serve for a resource.
func (m *Mapper) lackingVerbs(mapping *meta.RESTMapping) ([]string, error) {
	version := mapping.GroupVersionKind.GroupVersion()
	served, err := m.served.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return nil, fmt.Errorf("finding out what is served of %s: %w", version, err)
	}
	lacks := slices.Clone(needed)
	for _, r := range served.APIResources {
		if r.Name == mapping.Resource.Resource {
			lacks = slices.DeleteFunc(lacks, func(verb string) bool { return slices.Contains(r.Verbs, verb) })
		}
	}
	return lacks, nil
}
