package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// progress is how far an app's object says it is.
type progress struct {
	// Input is what it was last asked for, as app.input says it.
	Input string
	// Applied says that this input is in the cluster, Ready that it works as well.
	Applied, Ready bool
	// Handled is the last request for a look that it answered.
	Handled string
	// Says is its summary, for the message of a run that gets stuck; Failed says that it tells of a failure.
	Says   string
	Failed bool
}

// mark is when an app got somewhere.
type mark struct{ applied, ready time.Time }

// tracker watches the objects of all apps and remembers when each first was what it is expected to be.
type tracker struct {
	read func(*unstructured.Unstructured) progress

	mu    sync.Mutex
	seen  map[string]progress
	want  map[string]string
	marks map[string]mark
}

func newTracker(read func(*unstructured.Unstructured) progress) *tracker {
	return &tracker{read: read, seen: map[string]progress{}, marks: map[string]mark{}}
}

// start watches until the context ends. It returns when what is there now is known.
func (t *tracker) start(ctx context.Context, config *rest.Config, at place) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to watch %s: %w", at.Resource.Resource, err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, at.Resource, at.Namespace, 0, cache.Indexers{}, nil).Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.saw(o.(*unstructured.Unstructured), time.Now()) },
		UpdateFunc: func(_, o any) { t.saw(o.(*unstructured.Unstructured), time.Now()) },
		DeleteFunc: func(o any) {
			if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				_, name, _ = cache.SplitMetaNamespaceKey(name)
				t.lost(name, time.Now())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", at.Resource.Resource, err)
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return fmt.Errorf("watching %s: %w", at.Resource.Resource, context.Cause(ctx))
	}
	return nil
}

func (t *tracker) saw(o *unstructured.Unstructured, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[o.GetName()] = t.read(o)
	t.judge(o.GetName(), now)
}

func (t *tracker) lost(name string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, name)
	t.judge(name, now)
}

// judge marks an app the first time it is what it is expected to be.
func (t *tracker) judge(name string, now time.Time) {
	want, expected := t.want[name]
	if !expected {
		return
	}
	p, there := t.seen[name]
	if want == "" {
		p.Applied, p.Ready = !there, !there
	} else if p.Input != want {
		return
	}
	m := t.marks[name]
	if p.Applied && m.applied.IsZero() {
		m.applied = now
	}
	if p.Ready && m.ready.IsZero() {
		m.ready = now
	}
	t.marks[name] = m
}

// expect begins a wait: each of these apps is to become ready with the input given, or to be gone where that is "".
func (t *tracker) expect(inputs map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want, t.marks = inputs, map[string]mark{}
	for name := range inputs {
		t.judge(name, time.Now())
	}
}

// missing is how many apps are not there yet, and what one of them says: one that failed, where there is one.
func (t *tracker) missing() (int, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, example := 0, ""
	for name := range t.want {
		if !t.marks[name].ready.IsZero() {
			continue
		}
		count++
		if p := t.seen[name]; p.Failed || example == "" {
			example = name + ": " + p.Says
		}
	}
	return count, example
}

// unanswered is how many apps have not answered a request for a look.
func (t *tracker) unanswered(token string) (int, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, example := 0, ""
	for name, p := range t.seen {
		if p.Handled != token {
			count++
			example = name + ": " + p.Says
		}
	}
	return count, example
}

// results returns, in seconds since pushed, how long each app took to be applied, and when the last was ready.
func (t *tracker) results(pushed time.Time) (applied []float64, ready float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.marks {
		// The first apps can be done before git push has returned.
		applied = append(applied, max(0, m.applied.Sub(pushed).Seconds()))
		ready = max(ready, m.ready.Sub(pushed).Seconds())
	}
	return applied, ready
}
