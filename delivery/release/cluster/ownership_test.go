package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// TestALeftoverHookBelongsToItsTenant, in the cluster as in a namespace, also if apps have the same name.
func TestALeftoverHookBelongsToItsTenant(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, tenant string
		left              bool
	}{
		"in the namespace":          {"kubeop-acme-shop", "acme", true},
		"cluster-scoped":            {"", "acme", true},
		"another tenant's, as wide": {"", "other", false},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
		live.SetNamespace(c.namespace)
		live.SetName("one")
		live.SetLabels(map[string]string{v1alpha1.TenantLabel: c.tenant, v1alpha1.ProjectLabel: "shop", decide.AppLabel: "web"})
		client := &Client{Release: Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}}, Terms: Terms{App: "web"}}
		client.Terms.Ran = map[manifest.Identity]bool{client.Release.Identify(live): true}
		if got := client.hookLeft(live); got != c.left {
			t.Errorf("%s: %t, want %t", name, got, c.left)
		}
	}
}

// TestOnlyObjectsWithoutAnAppMayBeAdopted: an object of the whole cluster is never taken over, and none of another app.
func TestOnlyObjectsWithoutAnAppMayBeAdopted(t *testing.T) {
	mine := map[string]string{NameAnnotation: "web", NamespaceAnnotation: "kubeop-acme-shop"}
	others := map[string]string{NameAnnotation: "web", NamespaceAnnotation: "kubeop-acme-blog"}
	for name, c := range map[string]struct {
		namespace   string
		annotations map[string]string
		app         string
		take, want  bool
		platform    bool
	}{
		"of nobody":                                   {namespace: "kubeop-acme-shop"},
		"of nobody, and to be taken":                  {namespace: "kubeop-acme-shop", take: true, want: true},
		"of this release":                             {namespace: "kubeop-acme-shop", annotations: mine, want: true},
		"of a release of another namespace":           {namespace: "kubeop-acme-shop", annotations: others},
		"cluster-scoped, of nobody, to be taken":      {take: true},
		"cluster-scoped, of this release":             {annotations: mine, want: true},
		"of another app, to be taken":                 {namespace: "kubeop-acme-shop", app: "api", take: true},
		"of another app, said to be ours":             {namespace: "kubeop-acme-shop", annotations: mine, app: "api"},
		"cluster-scoped, to be taken by the platform": {take: true, platform: true, want: true},
		"of a tenant, to be taken by the platform":    {namespace: "kubeop-acme-shop", app: "web", take: true, platform: true},
		"of this app, to be taken":                    {namespace: "kubeop-acme-shop", app: "web", take: true, want: true},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}}
		live.SetNamespace(c.namespace)
		live.SetName("one")
		live.SetAnnotations(c.annotations)
		if c.app != "" {
			live.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", decide.AppLabel: c.app})
		}
		client := &Client{Release: Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}}, Terms: Terms{App: "web", TakeOwnership: c.take}}
		if c.platform {
			client.Release.Platform, client.Release.Release.Namespace = true, "edge"
		}
		if got := client.mayTake(live); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestAnObjectIsMarkedAsHelmsAndKeepsItsMetadata(t *testing.T) {
	for name, o := range map[string]*unstructured.Unstructured{
		"with metadata": {Object: map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"tier": "db"}, "annotations": map[string]any{"example.com/a": "b"},
		}}},
		"without": {Object: map[string]any{"metadata": map[string]any{}}},
	} {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}}.Claim(o)
		for key, value := range labels {
			if o.GetLabels()[key] != value {
				t.Errorf("%s: the label %s is lost", name, key)
			}
		}
		for key, value := range annotations {
			if o.GetAnnotations()[key] != value {
				t.Errorf("%s: the annotation %s is lost", name, key)
			}
		}
		if !(Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}}).owns(o) || o.GetLabels()[ManagedByLabel] != ManagedByHelm {
			t.Errorf("%s: the object is not the release's: %v, %v", name, o.GetLabels(), o.GetAnnotations())
		}
	}
}

// TestAnObjectThatNobodyChangedIsNotRead: a change without a client fails if it sends a request.
func TestAnObjectThatNobodyChangedIsNotRead(t *testing.T) {
	same := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"a": "b"}}}
	}
	asked := 0
	ch := &change{client: &Client{Terms: Terms{Unmoved: func(*unstructured.Unstructured) bool { asked++; return true }}}, before: same(), want: same()}
	if err := ch.carryOut(); err != nil || !ch.done || asked != 1 {
		t.Errorf("got %v, done %t, asked %d times whether the object was changed", err, ch.done, asked)
	}
}

// TestAnUnchangedObjectIsNotCompared: not every object can be compared, even with itself, such as one with a list of maps without the key that merges them.
func TestAnUnchangedObjectIsNotCompared(t *testing.T) {
	account := func() *unstructured.Unstructured {
		return object(t, "kind: ServiceAccount\napiVersion: v1\nmetadata: {name: a}\nsecrets: [{}]\n")
	}
	ch := &change{client: &Client{Terms: Terms{Unmoved: func(*unstructured.Unstructured) bool { return true }}}, before: account(), want: account()}
	if err := ch.update(); err != nil {
		t.Error(err)
	}
}

func TestObjectsOutsideOfTheNamespaceAreShared(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		platform  bool
		want      bool
	}{
		"cluster-scoped":                          {"", false, true},
		"cluster-scoped, of the platform":         {"", true, true},
		"in its namespace":                        {"edge", false, false},
		"in its namespace, of the platform":       {"edge", true, false},
		"in another namespace, of the platform":   {"kubeop-acme-shop", true, true},
		"in another namespace, of a tenant's app": {"kubeop-acme-shop", false, false},
	} {
		o := Objects{Release: types.NamespacedName{Namespace: "edge", Name: "web"}, Platform: c.platform}
		if got := o.shares(c.namespace); got != c.want {
			t.Errorf("%s: shared %t, want %t", name, got, c.want)
		}
	}
}

// TestAnObjectOutlivesItsReleaseIfItsChartSaysKeep, in Helm's spelling of it.
func TestAnObjectOutlivesItsReleaseIfItsChartSaysKeep(t *testing.T) {
	for policy, want := range map[string]bool{"keep": true, " Keep ": true, "KEEP": true, "": false, "delete": false, "keep-it": false} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetAnnotations(map[string]string{"helm.sh/resource-policy": policy})
		if got := kept(o); got != want {
			t.Errorf("%q: kept %t, want %t", policy, got, want)
		}
	}
	if noObject := "an answer of another type"; kept(noObject) || (Objects{}).owns(noObject) {
		t.Error("what is no object is kept or owned")
	}
}
