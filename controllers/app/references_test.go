package app

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestReferences(t *testing.T) {
	web, api := types.NamespacedName{Namespace: "a", Name: "web"}, types.NamespacedName{Namespace: "a", Name: "api"}
	shared, own := reference{"a", "ConfigMap", "shared"}, reference{"a", "Secret", "own"}
	var r references
	users := func(ref reference) []string {
		var names []string
		for _, app := range r.users(ref) {
			names = append(names, app.Name)
		}
		slices.Sort(names)
		return names
	}
	r.set(web, []reference{shared, own})
	r.set(api, []reference{shared})
	if diff := cmp.Diff([]string{"api", "web"}, users(shared)); diff != "" {
		t.Errorf("users of the shared one (-want +got):\n%s", diff)
	}
	r.set(web, []reference{own})
	if diff := cmp.Diff([]string{"api"}, users(shared)); diff != "" {
		t.Errorf("web dropped it (-want +got):\n%s", diff)
	}
	if got := users(reference{"b", "ConfigMap", "shared"}); got != nil {
		t.Errorf("an object of another namespace is used by %v", got)
	}
	r.set(web, nil)
	r.set(api, nil)
	if len(r.apps)+len(r.of) != 0 {
		t.Errorf("something is left: %v, %v", r.apps, r.of)
	}
}

func TestReferencesOf(t *testing.T) {
	ref := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
	app.Spec.Helm = &v1alpha1.HelmSource{
		SecretRef: ref("registry"), Git: &v1alpha1.ChartGitSource{SecretRef: ref("git")},
		ValuesFrom: []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "values"}, {Kind: "Secret", Name: "passwords", Optional: true}},
	}
	want := []reference{{"a", "Secret", "registry"}, {"a", "Secret", "git"}, {"a", "ConfigMap", "values"}, {"a", "Secret", "passwords"}}
	if diff := cmp.Diff(want, referencesOf(app), cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestContentsAreOfOneVersion(t *testing.T) {
	var c contents
	ref := reference{"a", "Secret", "x"}
	c.put(ref, "1", map[string][]byte{"k": []byte("v")})
	if _, ok := c.get(ref, "2"); ok {
		t.Error("an old version answers for a new one")
	}
	if data, ok := c.get(ref, "1"); !ok || string(data["k"]) != "v" {
		t.Errorf("got %v, %t", data, ok)
	}
}

func TestContentsAreBounded(t *testing.T) {
	var c contents
	big := map[string][]byte{"k": make([]byte, maxContents/4)}
	for i := range 20 {
		c.put(reference{"a", "Secret", string(rune('a' + i))}, "1", big)
		if held := len(c.held) * (maxContents / 4); held > maxContents {
			t.Fatalf("%d bytes are held", held)
		}
	}
	c.put(reference{"a", "Secret", "t"}, "2", big)
	if _, ok := c.get(reference{"a", "Secret", "t"}, "2"); !ok {
		t.Error("the newest is not held")
	}
}
