package build

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// valuesIn is a ConfigMap with a list of so many values.
func valuesIn(values int) *unstructured.Unstructured {
	list := make([]any, values)
	for i := range list {
		list[i] = true
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a<b"}, "list": list}}
}

func TestObjectsAreTheSameAfterTheyAreSent(t *testing.T) {
	want := []*unstructured.Unstructured{valuesIn(2), valuesIn(0)}
	texts, err := encoded(want)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(texts[0]), `\u003c`) {
		t.Errorf("it is written for HTML: %s", texts[0])
	}
	got, err := decoded(texts)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestTheValuesOfAllObjectsAreCounted on both sides: the process may send what it did not count.
func TestTheValuesOfAllObjectsAreCounted(t *testing.T) {
	half, all := valuesIn(maxNodes/2), valuesIn(maxNodes)
	for name, objects := range map[string][]*unstructured.Unstructured{"one": {all}, "two": {half, half}} {
		if _, err := encoded(objects); !errors.Is(err, yamlcheck.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	texts, err := encoded([]*unstructured.Unstructured{half})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decoded(texts); err != nil {
		t.Errorf("half of the limit: %v", err)
	}
	if _, err := decoded([][]byte{texts[0], texts[0]}); !errors.Is(err, yamlcheck.ErrTooLarge) {
		t.Errorf("twice half of it: %v", err)
	}
	if got, err := decoded([][]byte{[]byte(`{"a": `)}); err == nil || !strings.HasPrefix(err.Error(), "reading what was built: ") {
		t.Errorf("no object: %v, %v", got, err)
	}
	odd := valuesIn(0)
	odd.Object["list"] = func() {}
	if _, err := encoded([]*unstructured.Unstructured{odd}); err == nil || !strings.HasPrefix(err.Error(), "ConfigMap/a<b: ") {
		t.Errorf("what JSON does not have: %v", err)
	}
}
