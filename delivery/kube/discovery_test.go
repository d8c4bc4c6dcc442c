package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/transport"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: %[3]s
  names: {plural: %[1]s, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func definitions(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(discovered[0])
}

// define has the API server serve Widgets of a group.
func define(t *testing.T, group, scope string) schema.GroupVersionKind {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, definition, "widgets", group, scope), &u.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := definitions(t).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
}

func undefine(t *testing.T, group string) {
	t.Helper()
	if err := definitions(t).Delete(t.Context(), "widgets."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func() bool {
		_, err := definitions(t).Get(t.Context(), "widgets."+group, metav1.GetOptions{})
		return err != nil
	})
}

// watched runs a Discovery until the test ends and counts its calls.
func watched(t *testing.T, l *line, log *text, clock *testclock.FakeClock) *atomic.Int64 {
	t.Helper()
	calls := &atomic.Int64{}
	d, err := NewDiscovery(env.Config, l.client, log.logger(), clock, func(context.Context) { calls.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = d.Start(ctx) })
	t.Cleanup(func() { end(); running.Wait() })
	return calls
}

func TestDiscoveryMayNotWatch(t *testing.T) {
	t.Parallel()
	l, log := newLine(t), &text{}
	nobody := transport.ImpersonationConfig{UserName: "nobody"}
	l.client.Transport = transport.NewImpersonatingRoundTripper(nobody, l.client.Transport)
	calls := watched(t, l, log, testclock.NewFakeClock(time.Now()))
	eventually(t, "both refusals are logged", func() bool { return strings.Count(log.String(), "\n") == 2 })
	time.Sleep(2 * time.Second)
	if lines := strings.Count(log.String(), "\n"); lines != 2 {
		t.Errorf("logged %d lines:\n%s", lines, log)
	}
	if calls.Load() != 0 {
		t.Errorf("called %d times, want 0", calls.Load())
	}
}

// TestDiscoveryIsReadOnceForManyChanges is not parallel, because the CustomResourceDefinitions of other tests would cause calls too.
func TestDiscoveryIsReadOnceForManyChanges(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	calls := watched(t, newLine(t), &text{}, clock)
	var seen int64
	// rest lets time pass, second by second, until nothing is called for any more, and checks how many calls there were.
	rest := func(least, most int64) {
		t.Helper()
		eventually(t, "it is called", func() bool { return calls.Load() > seen })
		for quiet := 0; quiet < 50; quiet++ {
			now := calls.Load()
			if clock.HasWaiters() {
				clock.Step(discoveryPause)
			}
			time.Sleep(20 * time.Millisecond)
			if calls.Load() != now {
				quiet = 0
			}
		}
		if made := calls.Load() - seen; made < least || made > most {
			t.Errorf("called %d times, want %d to %d", made, least, most)
		}
		seen = calls.Load()
	}
	rest(2, 10) // after the first lists
	define(t, "calls.example", "Namespaced")
	rest(2, 10)

	for i := range 100 {
		patch := fmt.Appendf(nil, `{"spec":{"names":{"shortNames":["w%d"]}}}`, i)
		if _, err := definitions(t).Patch(t.Context(), "widgets.calls.example", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is called", func() bool { return calls.Load() > seen })
	if made := calls.Load() - seen; made != 1 {
		t.Errorf("called %d times for a burst in which no second passed, want 1", made)
	}
	rest(2, 10)
	undefine(t, "calls.example")
	rest(2, 10)
}

// TestTheMapperForgetsRemovedKinds is why there is Discovery: controller-runtime's own mapper answers for a kind that is gone.
func TestTheMapperForgetsRemovedKinds(t *testing.T) {
	t.Parallel()
	o, group := newOperator(t), "mapper.example"
	theirs, err := apiutil.NewDynamicRESTMapper(env.Config, o.client)
	if err != nil {
		t.Fatal(err)
	}
	kind := define(t, group, "Namespaced")
	for name, mapper := range map[string]meta.RESTMapper{"theirs": theirs, "ours": o.mapper} {
		eventually(t, name+" knows the kind", func() bool {
			meta.MaybeResetRESTMapper(mapper)
			_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return err == nil
		})
	}
	undefine(t, group)
	eventually(t, "after a reset ours has forgotten", func() bool {
		o.mapper.Reset()
		_, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return meta.IsNoMatchError(err)
	})
	if _, err := theirs.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		t.Errorf("controller-runtime's mapper forgets by itself now (%v): Discovery may do with it", err)
	}
}

func TestAKindMayReturnWithAnotherScope(t *testing.T) {
	t.Parallel()
	o, group, namespace := newOperator(t), "refresh.example", project(t)
	widget := "{apiVersion: refresh.example/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}"
	kind := define(t, group, "Namespaced")
	eventually(t, "the kind is served", func() bool {
		o.mapper.Reset()
		_, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	})
	first := o.make(t, namespace, widget)
	held := func(key types.NamespacedName) func() bool {
		return func() bool {
			object, known, err := o.Object(t.Context(), kind, key)
			if err != nil {
				t.Fatal(err)
			}
			return known && object != nil
		}
	}
	eventually(t, "it is held", held(keyOf(first)))
	undefine(t, group)
	eventually(t, "the kind is given up", func() bool {
		o.mapper.Reset()
		if err := o.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, known, err := o.Live(t.Context(), kind, keyOf(first))
		return !known && err == nil
	})
	path := "GET /apis/refresh.example/v1/widgets"
	asked := o.count(path)
	time.Sleep(2 * time.Second)
	if more := o.count(path) - asked; more != 0 {
		t.Errorf("%d more requests for a kind that was given up, want 0", more)
	}

	define(t, group, "Cluster")
	eventually(t, "the kind is served again", func() bool {
		o.mapper.Reset()
		m, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil && m.Scope.Name() == meta.RESTScopeNameRoot
	})
	if err := o.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	second := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w", "labels": map[string]any{"paas.kubeop.io/tenant": "acme"}}}}
	second.SetGroupVersionKind(kind)
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	eventually(t, "one can be made", func() bool {
		_, err := c.Resource(widgets).Create(t.Context(), second, metav1.CreateOptions{})
		return err == nil
	})
	eventually(t, "it is held", held(types.NamespacedName{Name: "w"}))
}
