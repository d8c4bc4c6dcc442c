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

// progress is the state that an app's object reports.
type progress struct {
	// Input is the last input that was requested, as app.input returns it.
	Input string
	// Applied means that this input is in the cluster. Ready means that it is also healthy.
	Applied, Ready bool
	// Handled is the last handled reconcile request.
	Handled string
	// Message is the app's summary, for the error of a run that stops. Failed means that it reports a failure.
	Message string
	Failed  bool
}

// mark is when an app was applied and when it was ready.
type mark struct{ applied, ready time.Time }

// tracker watches the objects of all apps and records when each first has its expected state.
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

// start watches until the context ends. It returns after the first list.
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

// judge marks an app when it first has its expected state.
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

// expect begins a wait. Each app must become ready with the given input, or must be deleted if the input is "".
func (t *tracker) expect(inputs map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.want, t.marks = inputs, map[string]mark{}
	for name := range inputs {
		t.judge(name, time.Now())
	}
}

// missing returns how many apps do not have their expected state, and the summary of one of them, preferably of a failed one.
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
			example = name + ": " + p.Message
		}
	}
	return count, example
}

// unanswered returns how many apps have not handled a reconcile request.
func (t *tracker) unanswered(token string) (int, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count, example := 0, ""
	for name, p := range t.seen {
		if p.Handled != token {
			count++
			example = name + ": " + p.Message
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
