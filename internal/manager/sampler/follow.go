package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/manager/watches"
	"github.com/kubeop/kubeop/internal/store"
)

// tick is how often the time passes.
const tick = time.Second

// losses logs once why a resource is not followed, until it is followed again. It does not log the first list, with which each watch begins.
type losses struct {
	log logr.Logger
	mu  sync.Mutex
	of  map[string]bool
}

func (l *losses) lost(kind string, silent time.Duration, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	level := 1
	if !l.of[kind] && !errors.Is(why, watches.ErrReadAnew) {
		level, l.of[kind] = 0, true
	}
	l.log.V(level).Info("Changes may have been missed, so there is a gap", "of", kind, "for", silent.String(), "why", why.Error())
}

func (l *losses) followed(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, kind)
}

// Follower follows a cluster and measures it with a Sampler, each time that its manager leads.
type Follower struct {
	// Cluster is the name that the cluster is measured under.
	Cluster string
	Store   store.Usage
	Config  *rest.Config
	// Clocks reads both clocks of the machine. Tick is how often the time passes, which tests with other clocks change; 0: each second.
	Clocks func() fence.Instant
	Tick   time.Duration

	mu  sync.Mutex
	now *Sampler
}

// Check returns why something is not measured, and nil on a manager that does not lead.
func (f *Follower) Check(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		return nil
	}
	return f.now.Following()
}

func (f *Follower) leads(with *Sampler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = with
}

// Run measures until the context ends. Minutes that were not written by then are lost.
func (f *Follower) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := New(f.Cluster, f.Store, f.Clocks)
	f.leads(s)
	defer f.leads(nil)
	log := logr.FromContextOrDiscard(ctx)
	caches, err := f.follow(ctx, s)
	if err != nil {
		return err
	}
	metrics, err := corev1client.NewForConfig(f.Config)
	if err != nil {
		return fmt.Errorf("making the client of the metrics API: %w", err)
	}
	go s.sample(ctx, func(ctx context.Context) ([]byte, error) {
		return metrics.RESTClient().Get().AbsPath(metricsPath).DoRaw(ctx)
	}, func(err error) {
		if err != nil {
			log.Info("The metrics API does not answer, so what pods use is not measured", "why", err.Error())
			return
		}
		log.Info("The metrics API answers, so what pods use is measured")
	})
	followed := make(chan error, 1)
	go func() { followed <- caches.Start(ctx) }()
	s.run(ctx, cmp.Or(f.Tick, tick))
	return <-followed
}

// run advances the time and writes minutes in another goroutine, until the context ends. It logs once that the store fails, until the store works again.
func (s *Sampler) run(ctx context.Context, tick time.Duration) {
	var both sync.WaitGroup
	both.Go(func() { each(ctx, tick, s.Pass) })
	failed := false
	both.Go(func() {
		each(ctx, tick, func(ctx context.Context) {
			err := s.Write(ctx)
			if err != nil && !failed && ctx.Err() == nil {
				logr.FromContextOrDiscard(ctx).Error(err, "Storing what was used")
			}
			failed = err != nil
		})
	})
	both.Wait()
}

// each calls do repeatedly until the context ends.
func each(ctx context.Context, tick time.Duration, do func(context.Context)) {
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			do(ctx)
		}
	}
}

// follow returns caches that report changes to a sampler once they are started.
func (f *Follower) follow(ctx context.Context, s *Sampler) (cache.Cache, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	// The kinds are known, so a start does not depend on the API server.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind(v1alpha1.AppKind), meta.RESTScopeNamespace)
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "Service"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	logged := &losses{log: logr.FromContextOrDiscard(ctx), of: map[string]bool{}}
	watched := &watches.Watches{
		Lost: func(kind string, silent time.Duration, why error) {
			logged.lost(kind, silent, why)
			s.Lost(kind, silent)
		},
		Followed: func(kind string) {
			logged.followed(kind)
			s.Followed(kind)
		},
		Now: time.Now,
	}
	config := rest.CopyConfig(f.Config)
	config.Wrap(watched.Wrap)
	caches, err := cache.New(config, cache.Options{Scheme: scheme, Mapper: mapper, DefaultTransform: slim, ReaderFailOnMissingInformer: true})
	if err != nil {
		return nil, fmt.Errorf("making the caches: %w", err)
	}
	var filled []toolscache.ResourceEventHandlerRegistration
	for _, kind := range followed() {
		informer, err := caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("making the caches: %w", err)
		}
		registration, err := informer.AddEventHandler(s.handler())
		if err != nil {
			return nil, fmt.Errorf("making the caches: %w", err)
		}
		filled = append(filled, registration)
	}
	s.synced = func() bool {
		for _, registration := range filled {
			if !registration.HasSynced() {
				return false
			}
		}
		return true
	}
	return caches, nil
}

func (s *Sampler) handler() toolscache.ResourceEventHandler {
	put := func(object any) {
		if o, is := object.(client.Object); is {
			s.Put(o)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			// The event of a deletion that was missed has the object as it was last seen.
			if missed, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = missed.Obj
			}
			if o, is := object.(client.Object); is {
				s.Delete(o)
			}
		},
	}
}
