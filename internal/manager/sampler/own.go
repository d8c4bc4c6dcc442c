package sampler

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/tally"
	"github.com/kubeop/kubeop/internal/meter"
)

// thing is a pod, claim, Service or App, with what it uses now.
type thing struct {
	namespace, app string
	rates          []tally.Rate
	// began is the time from which rates count. A pod has rates from its start, with what it requests.
	began time.Time
	// sampled is the time of the answer of the metrics API; for a pod, of the first answer that has it, and zero without any.
	sampled time.Time
}

// things are the pods, claims, Services and Apps that use something now.
type things struct {
	all map[tally.Key]thing
	// of has the keys of the things in each namespace.
	of map[string]map[tally.Key]bool
	// apps has the existing Apps, as "namespace/name".
	apps map[string]bool
}

func name(namespace, name string) string { return namespace + "/" + name }

// labelled returns the app that an object's label names. A tenant can write this label, so the app may not exist.
func labelled(object client.Object) string {
	if _, is := object.(*v1alpha1.App); is {
		return object.GetName()
	}
	return object.GetLabels()[v1alpha1.AppLabel]
}

// set records what a thing uses from now on, or since it began if it is new. If a pod ends, its samples of the metrics API end, too.
func (s *Sampler) set(key tally.Key, is thing) {
	now := s.clock.now()
	if len(is.rates) == 0 {
		before, has := s.things.all[key]
		if !has {
			return
		}
		delete(s.things.all, key)
		if delete(s.things.of[before.namespace], key); len(s.things.of[before.namespace]) == 0 {
			delete(s.things.of, before.namespace)
		}
		s.tally.Set(now, key, tally.Owner{})
		if key.Group == meter.OfPods {
			s.set(tally.Key{Group: meter.OfMetrics, Name: key.Name}, thing{})
		}
		return
	}
	if s.things.of[is.namespace] == nil {
		s.things.of[is.namespace] = map[tally.Key]bool{}
	}
	before, has := s.things.all[key]
	if has {
		is.began = before.began
		if is.sampled.IsZero() {
			is.sampled = before.sampled
		}
	} else if is.began.IsZero() {
		is.began = now
	}
	s.things.all[key], s.things.of[is.namespace][key] = is, true
	if has {
		s.tally.Set(now, key, s.ownerOf(is), is.rates...)
	} else {
		s.tally.SetSince(now, is.began, key, s.ownerOf(is), is.rates...)
	}
}

// ownerOf returns the owner of a thing. Anybody may write a label, so it counts only if its App exists.
func (s *Sampler) ownerOf(is thing) tally.Owner {
	if !s.things.apps[name(is.namespace, is.app)] {
		return ownerOf(is.namespace, "")
	}
	return ownerOf(is.namespace, is.app)
}

// appear records that an App exists. It is called again for each change of the App.
func (s *Sampler) appear(namespace, app string) {
	if key := name(namespace, app); !s.things.apps[key] {
		s.things.apps[key] = true
		s.own(namespace)
	}
}

// own updates the owners of all things in a namespace after an App was created or deleted.
func (s *Sampler) own(namespace string) {
	now := s.clock.now()
	for key := range s.things.of[namespace] {
		is := s.things.all[key]
		s.tally.Set(now, key, s.ownerOf(is), is.rates...)
	}
}
