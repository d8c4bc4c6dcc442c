package manifest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestUnstampedManifestsHaveTheLabelsOfOthersOnly, on objects and on templates in them.
func TestUnstampedManifestsHaveTheLabelsOfOthersOnly(t *testing.T) {
	const text = "---\n# Source: web/templates/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    app: web\n    paas.kubeop.io/app: shop\n  name: a\n" +
		"spec:\n  template:\n    metadata:\n      labels:\n        app: web\n        paas.kubeop.io.example.com/app: b\n        paas.kubeop.io/project: acme\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
	const want = "---\n# Source: web/templates/a.yaml\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  labels:\n    app: web\n  name: a\n" +
		"spec:\n  template:\n    metadata:\n      labels:\n        app: web\n        paas.kubeop.io.example.com/app: b\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
	got, err := Unstamped(text)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := Unstamped("a: [\n"); err == nil {
		t.Errorf("what is no manifest became %q", got)
	}
}

func TestIdentityOfAnObjectIsThatOfItsNamespaceAndKind(t *testing.T) {
	object := func(version, namespace string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(version)
		u.SetKind("Deployment")
		u.SetNamespace(namespace)
		u.SetName("web")
		return u
	}
	first := Identify(object("apps/v1", ""), "team")
	for name, c := range map[string]struct {
		other *unstructured.Unstructured
		same  bool
	}{
		"the namespace is given": {object("apps/v1", "team"), true},
		"another version":        {object("apps/v1beta1", ""), true},
		"another namespace":      {object("apps/v1", "other"), false},
		"another group":          {object("example.com/v1", ""), false},
	} {
		if got := Identify(c.other, "team") == first; got != c.same {
			t.Errorf("%s: the same is %t, want %t", name, got, c.same)
		}
	}
}

// TestObjectsThatHaveTheAppsChangesGetThemOnce: after AsChanged, the gate only checks.
func TestObjectsThatHaveTheAppsChangesGetThemOnce(t *testing.T) {
	common := &v1alpha1.CommonMetadata{Labels: map[string]string{"team": "a"}}
	for name, changed := range map[string]bool{"not changed": false, "changed": true} {
		var seen map[string]string
		refused := errors.New("refused")
		g := NewGate(func(objects []*unstructured.Unstructured) error {
			seen = objects[0].GetLabels()
			return refused
		}, always, nil, common)
		if changed {
			g.AsChanged()
		}
		if _, err := g.Pass("---\n" + configMap); !errors.Is(err, refused) {
			t.Errorf("%s: got %v", name, err)
		}
		if got := seen["team"] == "a"; got == changed {
			t.Errorf("%s: the labels are %v", name, seen)
		}
	}
}
