package kube

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// rows holds the objects of one watch, of one kind in one namespace: by name, by release and by app. A reflector fills it.
type rows struct {
	// changed is called for every object that is added, changed or removed after the first list, with its labels. If the labels change, it
	// is called twice: with the old labels and with the new ones.
	changed func(name string, labels map[string]string)
	// synced is closed when the first list has arrived.
	synced chan struct{}

	mu               sync.RWMutex
	byName           map[string]*row
	byRelease, byApp map[string][]*row
}

func newRows(changed func(name string, labels map[string]string)) *rows {
	return &rows{
		changed: changed, synced: make(chan struct{}),
		byName: map[string]*row{}, byRelease: map[string][]*row{}, byApp: map[string][]*row{},
	}
}

// inStep reports whether the first list has arrived.
func (s *rows) inStep() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

func (s *rows) version(name string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.byName[name]; r != nil {
		return r.version
	}
	return ""
}

func (s *rows) records(namespace, release string) []metav1.PartialObjectMetadata {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []metav1.PartialObjectMetadata
	for _, r := range s.byRelease[release] {
		out = append(out, r.metadata(namespace))
	}
	return out
}

func (s *rows) releases(app string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for _, r := range s.byApp[app] {
		out = append(out, ownerBy(r.labels()).release)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// change is the state of one object before and after; nil if it did not exist before, or does not exist after.
type change struct{ was, is *row }

// Add adds an object. toolscache.ReflectorStore has this and the following methods.
func (s *rows) Add(object any) error { return s.put(object) }

// Update replaces an object.
func (s *rows) Update(object any) error { return s.put(object) }

func (s *rows) put(object any) error {
	r, err := pack(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	c := s.set(r)
	s.mu.Unlock()
	s.notify(c)
	return nil
}

// Delete removes an object.
func (s *rows) Delete(object any) error {
	r, err := pack(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	c := s.drop(r.name)
	s.mu.Unlock()
	s.notify(c)
	return nil
}

// Replace replaces all objects by those of a list: the first one, or a later one when the watch had to start anew.
func (s *rows) Replace(objects []any, _ string) error {
	listed := make(map[string]*row, len(objects))
	for _, o := range objects {
		r, err := pack(o)
		if err != nil {
			return err
		}
		listed[r.name] = r
	}
	changes := s.replace(listed)
	if !s.inStep() {
		close(s.synced)
		return nil
	}
	for _, c := range changes {
		s.notify(c)
	}
	return nil
}

func (s *rows) replace(listed map[string]*row) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []change
	for name := range s.byName {
		if listed[name] == nil {
			changes = append(changes, s.drop(name))
		}
	}
	for _, r := range listed {
		changes = append(changes, s.set(r))
	}
	return changes
}

// Resync does nothing.
func (s *rows) Resync() error { return nil }

// Transformer returns a function that packs each object of a streamed list.
func (s *rows) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) { return pack(object) }
}

func (s *rows) set(r *row) change {
	c := s.drop(r.name)
	s.byName[r.name] = r
	if of := ownerBy(r.labels()); of.release != "" {
		s.byRelease[of.release] = append(s.byRelease[of.release], r)
		s.byApp[of.app] = append(s.byApp[of.app], r)
	}
	c.is = r
	return c
}

func (s *rows) drop(name string) change {
	was := s.byName[name]
	if was == nil {
		return change{}
	}
	delete(s.byName, name)
	if of := ownerBy(was.labels()); of.release != "" {
		remove(s.byRelease, of.release, was)
		remove(s.byApp, of.app, was)
	}
	return change{was: was}
}

func remove(index map[string][]*row, key string, r *row) {
	index[key] = slices.DeleteFunc(index[key], func(x *row) bool { return x == r })
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

func (s *rows) notify(c change) {
	var had, has map[string]string
	if c.was != nil {
		had = c.was.labels()
	}
	if c.is != nil {
		has = c.is.labels()
	}
	switch {
	case c.is == nil && c.was == nil, c.is != nil && c.was != nil && c.is.version == c.was.version:
		return
	case c.is == nil:
		s.changed(c.was.name, had)
		return
	case c.was != nil && ownerBy(had) != ownerBy(has):
		s.changed(c.was.name, had)
	}
	s.changed(c.is.name, has)
}
