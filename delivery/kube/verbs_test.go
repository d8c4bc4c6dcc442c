package kube

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestOnlyStoredKindsCanBeOwned(t *testing.T) {
	served := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: "kepts", SingularName: "kept", Kind: "Kept", Namespaced: true, Verbs: append([]string{"create"}, needed...)},
			{Name: "kepts/status", Kind: "Kept", Namespaced: true, Verbs: []string{"get"}},
			{Name: "reviews", SingularName: "review", Kind: "Review", Namespaced: true, Verbs: []string{"create"}},
			{Name: "metrics", SingularName: "metric", Kind: "Metric", Namespaced: true, Verbs: []string{"get", "list"}},
		},
	}}}}
	mapper := NewMapper(memory.NewMemCacheClient(served))
	clients := NewClients(nil, nil, mapper, Deployers{})
	for kind, lacks := range map[string][]string{
		"Kept": nil, "Review": needed, "Metric": {"watch", "patch", "delete"},
	} {
		for range 2 { // The second time it is remembered.
			namespaced, err := clients.Namespaced(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind})
			var unkept *UnkeptKindError
			if !namespaced && lacks == nil || errors.As(err, &unkept) != (lacks != nil) {
				t.Errorf("%s: got %t, %v", kind, namespaced, err)
			}
			if unkept != nil && !slices.Equal(unkept.Lacks, lacks) {
				t.Errorf("%s lacks %v, want %v", kind, unkept.Lacks, lacks)
			}
		}
	}
	served.Resources[0].APIResources[2].Verbs = needed
	mapper.Reset()
	if _, err := clients.Namespaced(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Review"}); err != nil {
		t.Errorf("after a reset: %v", err)
	}
}
