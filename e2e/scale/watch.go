package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// marks are the times at which each key first had its expected state.
type marks struct {
	mu    sync.Mutex
	times map[string]time.Time
	// more is closed and replaced with every mark.
	more chan struct{}
}

func newMarks() *marks { return &marks{times: map[string]time.Time{}, more: make(chan struct{})} }

func (m *marks) set(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.times[key]; there {
		return
	}
	m.times[key] = time.Now()
	close(m.more)
	m.more = make(chan struct{})
}

// count returns the number of marks, and a channel that is closed when there are more.
func (m *marks) count() (int, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.times), m.more
}

// wait waits for one mark and returns its time.
func (m *marks) wait(ctx context.Context, key string) (time.Time, error) {
	for {
		m.mu.Lock()
		at, there := m.times[key]
		more := m.more
		m.mu.Unlock()
		if there {
			return at, nil
		}
		select {
		case <-ctx.Done():
			return at, fmt.Errorf("waiting for %s: %w", key, context.Cause(ctx))
		case <-more:
		}
	}
}

// all returns the times of all marks, in seconds since the given time, unordered.
func (m *marks) all(since time.Time) []float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []float64
	for _, at := range m.times {
		all = append(all, at.Sub(since).Seconds())
	}
	return all
}

// watchReady marks Apps by namespace and name when they are Ready, until the context ends.
func watchReady(ctx context.Context, config *rest.Config) (*marks, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to watch apps: %w", err)
	}
	m := newMarks()
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(v1alpha1.GroupVersion.WithResource("apps")).Informer()
	// Keep only the names of objects, because this process shares the measured machine.
	err = informer.SetTransform(func(o any) (any, error) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		a := &v1alpha1.App{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, a); err == nil && isReady(a) {
			m.set(a.Namespace + "/" + a.Name)
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion()}}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watching apps: %w", err)
	}
	return m, start(ctx, informer)
}

func isReady(a *v1alpha1.App) bool {
	return a.Status.ObservedGeneration == a.Generation && meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ReadyCondition)
}

// watchApplied marks applied ConfigMaps by key and turn, until the context ends.
func watchApplied(ctx context.Context, config *rest.Config) (*marks, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to watch ConfigMaps: %w", err)
	}
	m := newMarks()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = turnLabel
	}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	err = informer.SetTransform(func(o any) (any, error) {
		c, ok := o.(*corev1.ConfigMap)
		if !ok {
			return o, nil
		}
		m.set(applied(c.Namespace+"/"+c.Name, c.Data[turnKey]))
		c.ManagedFields, c.Labels = nil, nil
		return c, nil
	})
	if err != nil {
		return nil, fmt.Errorf("watching ConfigMaps: %w", err)
	}
	return m, start(ctx, informer)
}

// applied returns the mark of a turn.
func applied(key, turn string) string { return key + " " + turn }

func start(ctx context.Context, informer cache.SharedIndexInformer) error {
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("starting a watch: %w", context.Cause(ctx))
	}
	return nil
}
