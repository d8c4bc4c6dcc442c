package crd

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestADefinitionIsKnownInAnyVersion(t *testing.T) {
	for apiVersion, want := range map[string]bool{"apiextensions.k8s.io/v1": true, "apiextensions.k8s.io/v1beta1": true, "example.com/v1": false, "v1": false} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "CustomResourceDefinition"}}
		if got := Is(o); got != want {
			t.Errorf("%s: %t, want %t", apiVersion, got, want)
		}
	}
}

func TestDefinesNamesTheKindOfADefinition(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Widget"}}}}
	if got, want := Defines(o), (schema.GroupKind{Group: "example.com", Kind: "Widget"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEstablishedNeedsTheStatusTrue(t *testing.T) {
	for status, want := range map[string]bool{"True": true, "False": false, "": false} {
		conditions := []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": status}}
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
		if got := Established(o); got != want {
			t.Errorf("status %q: %t, want %t", status, got, want)
		}
	}
}

func TestGroupsOfThePlatformAreProtected(t *testing.T) {
	for group, want := range map[string]bool{
		"paas.kubeop.io":        true,
		"more.paas.kubeop.io":   true,
		"K8s.IO":                true,
		"k8s.io":                true,
		"networking.k8s.io":     true,
		"snapshot.x.k8s.io":     true,
		"addons.kubernetes.io":  true,
		"example.com":           false,
		"notk8s.io":             false,
		"k8s.io.example.com":    false,
		"monitoring.coreos.com": false,
	} {
		if got := Protected(group); got != want {
			t.Errorf("%s: %t, want %t", group, got, want)
		}
	}
}
