package cluster

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

const definitionOfDatabases = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: databases.example.org}\n" +
	"spec: {group: example.org, names: {kind: Database, plural: databases}, versions: [{name: v1, served: true, storage: true}]}\n"

// TestNewKindsAreWaitedForUntilTheyAreServed and an error ends the wait with the name of the definition.
func TestNewKindsAreWaitedForUntilTheyAreServed(t *testing.T) {
	served := func(status string) *unstructured.Unstructured {
		return object(t, definitionOfDatabases+"status: {conditions: [{type: Established, status: '"+status+"'}]}\n")
	}
	for name, tc := range map[string]struct {
		// reads are what one read after the other returns; the last is repeated.
		reads []*unstructured.Unstructured
		fails map[string]*apierrors.StatusError
		late  bool
		says  string
		want  int
	}{
		"at once":           {reads: []*unstructured.Unstructured{served("True")}, want: 1},
		"after two reads":   {reads: []*unstructured.Unstructured{object(t, definitionOfDatabases), served("False"), served("True")}, want: 3},
		"it cannot be read": {reads: []*unstructured.Unstructured{served("True")}, fails: map[string]*apierrors.StatusError{"GET": errForbidden}, says: "no role allows it", want: 1},
		"not in time": {
			reads: []*unstructured.Unstructured{served("False")}, late: true, want: 1,
			says: "CustomResourceDefinition/databases.example.org: the API server did not serve its kind within 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: tc.fails}
			c := api.client(t)
			c.clock = &pauses{late: tc.late}
			api.read = func(n int) { api.live = tc.reads[min(n, len(tc.reads))-1] }
			gv := schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
			client, err := c.rest.of(gv)
			if err != nil {
				t.Fatal(err)
			}
			err = c.established(kube.ResourceList{&resource.Info{Name: "databases.example.org", Client: client, Mapping: &meta.RESTMapping{
				Resource: gv.WithResource("customresourcedefinitions"), GroupVersionKind: gv.WithKind("CustomResourceDefinition"), Scope: meta.RESTScopeRoot,
			}}})
			if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if !errors.Is(c.Faults.All(), err) {
				t.Errorf("the errors of requests are %v, without %v", c.Faults.All(), err)
			}
			if api.reads != tc.want {
				t.Errorf("it was read %d times, want %d", api.reads, tc.want)
			}
		})
	}
}

// failingMapper is a mapper that cannot ask the API server.
type failingMapper struct {
	meta.RESTMapper
	err error
}

func (m failingMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, m.err
}

// TestAKindThatIsNotServedIsNoError, but one that cannot be looked up is.
func TestAKindThatIsNotServedIsNoError(t *testing.T) {
	away := errors.New("no API server")
	mapperOf := func(kinds ...schema.GroupVersionKind) meta.RESTMapper {
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.org", Version: "v1"}})
		for _, kind := range kinds {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
		return mapper
	}
	for name, tc := range map[string]struct {
		mapper meta.RESTMapper
		want   bool
		err    error
	}{
		"served":        {mapperOf(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Database"}), true, nil},
		"no such kind":  {mapperOf(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Table"}), false, nil},
		"another group": {mapperOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}), false, nil},
		"no answer":     {failingMapper{err: away}, false, away},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewKinds(discovered{}, tc.mapper).knows(object(t, definitionOfDatabases))
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %t, %v, want %t, %v", got, err, tc.want, tc.err)
			}
		})
	}
}
