// Package sampler measures what the apps of a cluster use. It watches pods, claims, Services and Apps, reads the metrics API, and writes each minute to
// the store once it is certain that no watch was silent in it.
package sampler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/manager/tally"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// settling is how long after the end of a minute it is written: longer than it takes to notice that a connection is broken.
	settling = 90 * time.Second
	// mending is how long after its start a watch counts as complete: by then it has read all objects that existed before.
	mending = 30 * time.Second
	// standing is the longest pause between two calls of Pass. After a longer pause, the process was stopped, and the time of the pause is a gap.
	standing = 10 * time.Second
	// maxUnwritten is how many minutes are kept in memory while the store fails. Beyond that, the oldest minutes are lost.
	maxUnwritten = 60
)

// Sampler measures a cluster. Its methods are safe for concurrent use.
type Sampler struct {
	// cluster is the name under which amounts are stored.
	cluster string
	store   store.Usage
	// synced reports whether the caches have read all kinds once.
	synced func() bool

	mu     sync.Mutex
	clock  *clock
	tally  *tally.Tally
	things things
	// mended has the time since which a watch follows a resource. A resource without an entry is not followed now.
	mended  map[string]time.Time
	sampled time.Time
	// passed is the time of the last Pass, and resumed the time of the last one after the process was stopped.
	passed, resumed time.Time
	// unwritten are the minutes that wait for the store, and lost is how many waited for too long.
	unwritten []store.Minute
	lost      int
}

// New returns a sampler that begins to measure now, and knows no object yet.
func New(cluster string, to store.Usage, clocks func() fence.Instant) *Sampler {
	s := &Sampler{cluster: cluster, store: to, clock: newClock(clocks), mended: map[string]time.Time{}, synced: func() bool { return true }}
	s.passed = s.clock.now()
	s.tally = tally.New(s.passed)
	s.things = things{all: map[tally.Key]thing{}, of: map[string]map[tally.Key]bool{}, apps: map[string]bool{}}
	return s
}

// Put records the present state of an object.
func (s *Sampler) Put(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !measurable(object.GetNamespace()) {
		return
	}
	group, rates := ratesOf(object)
	if _, is := object.(*v1alpha1.App); is {
		s.appear(object.GetNamespace(), object.GetName())
	}
	s.set(tally.Key{Group: group, Name: name(object.GetNamespace(), object.GetName())}, thing{namespace: object.GetNamespace(), app: labelled(object), rates: rates})
}

// Delete records that an object is gone.
func (s *Sampler) Delete(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group, _ := ratesOf(object)
	s.set(tally.Key{Group: group, Name: name(object.GetNamespace(), object.GetName())}, thing{})
	if _, is := object.(*v1alpha1.App); is {
		delete(s.things.apps, name(object.GetNamespace(), object.GetName()))
		s.own(object.GetNamespace())
	}
}

// Lost records that a resource is not followed, and for how long it may already not have been.
func (s *Sampler) Lost(kind string, silent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mended, kind)
	for group, needed := range needs {
		if slices.Contains(needed, kind) {
			s.tally.Break(group, s.clock.now().Add(-silent))
		}
	}
}

// Followed records that a resource is followed again.
func (s *Sampler) Followed(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.mended[kind]; !is {
		s.mended[kind] = s.clock.now()
	}
}

// Pass measures up to now. Call it every second. It never waits for the store.
func (s *Sampler) Pass(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := logr.FromContextOrDiscard(ctx)
	if stood := s.clock.now().Sub(s.passed); stood > standing {
		log.Info("The process was stopped, so what was used meanwhile is not known", "for", stood.String())
		s.resume()
	}
	if s.clock.adopt() {
		log.Info("The clock of the machine differs for long, so it is taken for right. The minutes that were not written are lost", "now", s.clock.now())
		s.rebase()
	}
	now := s.clock.now()
	s.passed = now
	s.tally.Advance(now)
	s.forgetSamples(now)
	s.mend(now)
	s.take(now)
}

// resume marks the time in which the process was stopped as a gap, because events of watches came late, or were lost.
func (s *Sampler) resume() {
	now := s.clock.now()
	for _, group := range meter.Groups {
		s.tally.Break(group, s.passed)
	}
	for kind := range s.mended {
		s.mended[kind] = now
	}
	s.resumed = now
}

// take moves complete minutes from the tally to the unwritten ones. A minute is complete when a broken connection during it would have been noticed by
// now. After a stop of the process, that takes as long again. No minute is complete while the machine's clock differs, because that clock may be right.
func (s *Sampler) take(now time.Time) {
	if s.clock.differs() || now.Sub(s.resumed) < settling {
		s.lost += len(s.tally.Take(now.Add(-maxUnwritten * time.Minute)))
		return
	}
	for _, m := range s.tally.Take(now.Add(-settling)) {
		if groups := m.Groups(); len(groups) > 0 {
			s.unwritten = append(s.unwritten, s.minute(m, groups))
		}
	}
	if more := len(s.unwritten) - maxUnwritten; more > 0 {
		s.unwritten, s.lost = s.unwritten[more:], s.lost+more
	}
}

// Write writes the complete minutes to the store, and waits for it. Only one goroutine may call it.
func (s *Sampler) Write(ctx context.Context) error {
	for {
		next, waiting := s.next()
		if waiting == 0 {
			return nil
		}
		if err := s.store.AddMinute(ctx, next); err != nil {
			return fmt.Errorf("%d minutes wait: %w", waiting, err)
		}
		s.wrote(ctx, next)
	}
}

// next returns the oldest unwritten minute, and how many minutes are unwritten.
func (s *Sampler) next() (m store.Minute, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unwritten) == 0 {
		return m, 0
	}
	return s.unwritten[0], len(s.unwritten)
}

// wrote drops a minute that the store has.
func (s *Sampler) wrote(ctx context.Context, m store.Minute) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unwritten) > 0 && s.unwritten[0].Begin.Equal(m.Begin) {
		s.unwritten = s.unwritten[1:]
	}
	if s.lost > 0 {
		logr.FromContextOrDiscard(ctx).Info("Minutes are lost, because they waited for too long", "minutes", s.lost)
		s.lost = 0
	}
}

// rebase continues at the present time of the clock after adopt changed it.
func (s *Sampler) rebase() {
	now := s.clock.now()
	s.tally.Rebase(now)
	for kind := range s.mended {
		s.mended[kind] = now
	}
	s.passed, s.resumed, s.sampled = now, now, now
	for key, is := range s.things.all {
		if key.Group == meter.OfMetrics {
			is.sampled = now
			s.things.all[key] = is
		}
	}
}

// mend begins to measure each group of meters whose resources have all been followed for at least the time mending.
func (s *Sampler) mend(now time.Time) {
	if !s.synced() {
		return
	}
	for group, needed := range needs {
		mended := true
		for _, kind := range needed {
			since, is := s.mended[kind]
			mended = mended && is && now.Sub(since) >= mending
		}
		if mended {
			s.tally.Mend(now, group)
		}
	}
}

func (s *Sampler) minute(m *tally.Minute, groups []meter.Group) store.Minute {
	used := map[store.Place]store.Amounts{}
	for owner, amounts := range m.Amounts() {
		used[store.Place{Tenant: owner.Tenant, Project: owner.Project, App: owner.App, Cluster: s.cluster}] = amounts
	}
	return store.Minute{Cluster: s.cluster, Begin: m.Begin, Groups: groups, Used: used}
}

// Following returns an error that names the resources that no watch follows. A cluster without a metrics API is no error.
func (s *Sampler) Following() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, kind := range []string{apps, pods, claims, services} {
		if _, is := s.mended[kind]; !is {
			all = append(all, fmt.Errorf("%s are not followed", kind))
		}
	}
	return errors.Join(all...)
}
