package quota

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster has one role, and serves what is set; err is what discovery fails with.
type cluster struct {
	client.Reader
	rules  []rbacv1.PolicyRule
	served []*metav1.APIResourceList
	err    error
	absent bool
	// away is what reading the role fails with, and lost what listing the definitions fails with.
	away, lost error
	// defined are the times at which CustomResourceDefinitions were created, by their names.
	defined map[string]time.Time
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.away != nil && !c.absent {
		return c.away
	}
	if c.absent {
		return apierrors.NewNotFound(rbacv1.Resource("clusterroles"), key.Name)
	}
	into.(*rbacv1.ClusterRole).Rules = c.rules
	return nil
}

func (c *cluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into := list.(*metav1.PartialObjectMetadataList)
	for name, at := range c.defined {
		into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: at}}})
	}
	return c.lost
}

func (c *cluster) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return nil, c.served, c.err
}

func serving(version string, resources ...string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: version}
	for _, name := range resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: true, Verbs: all})
	}
	return list
}

var all = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func rule(verbs, groups, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verbs}, APIGroups: []string{groups}, Resources: []string{resources}}
}

func TestTheKindsAreThoseThatCanBeCreatedAndCounted(t *testing.T) {
	nodes := serving("v1", "configmaps", "pods", "pods/exec", "events", "bindings", "nodes")
	nodes.APIResources[4].Verbs = metav1.Verbs{"create"}
	nodes.APIResources[5].Namespaced = false
	served := []*metav1.APIResourceList{
		nodes, serving("example.com/v1", "queues", "plans"), serving("example.com/v1beta1", "queues"), serving("other.example/v1", "things", "events"),
		serving("apps/v1", "deployments"), serving("events.k8s.io/v1", "events"),
	}
	base := []string{"configmaps", "deployments.apps", "pods"}
	for name, c := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  []string
	}{
		"nothing but the chart's own": {want: base},
		"one more":                    {[]rbacv1.PolicyRule{rule("create", "example.com", "queues")}, append(base, "queues.example.com")},
		"one that is only read":       {[]rbacv1.PolicyRule{rule("list", "example.com", "queues"), rule("update", "example.com", "plans")}, base},
		"any verb, any resource":      {[]rbacv1.PolicyRule{rule("*", "example.com", "*")}, []string{"configmaps", "deployments.apps", "plans.example.com", "pods", "queues.example.com"}},
		"another group's":             {[]rbacv1.PolicyRule{rule("create", "other.example", "events")}, []string{"configmaps", "deployments.apps", "events.other.example", "pods"}},
		"what cannot be counted":      {[]rbacv1.PolicyRule{rule("create", "", "events"), rule("create", "*", "bindings"), rule("create", "", "pods/exec"), rule("create", "", "nodes")}, base},
		"what is not served":          {[]rbacv1.PolicyRule{rule("create", "gone.example", "ghosts")}, base},
	} {
		t.Run(name, func(t *testing.T) {
			world := &cluster{rules: c.rules, served: served}
			k := &Kinds{Roles: world, Definitions: world, Served: world, Now: time.Now}
			if diff := cmp.Diff(c.want, names(t, k)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func names(t *testing.T, k *Kinds) []string {
	t.Helper()
	kinds, err := k.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, kind := range kinds {
		out = append(out, kind.String())
	}
	return out
}

// TestAKindThatIsNewAtTheStartIsCountedWhenKubernetesKnowsIt: kubeop may start just after a kind was defined.
func TestAKindThatIsNewAtTheStartIsCountedWhenKubernetesKnowsIt(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		defined time.Time
		// counted is how long after the start the kind is counted, at the earliest.
		counted time.Duration
	}{
		"by Kubernetes":                {time.Time{}, 0},
		"long ago":                     {began.Add(-time.Hour), 0},
		"two minutes ago":              {began.Add(-settling), 0},
		"a moment ago":                 {began.Add(-10 * time.Second), settling - 10*time.Second},
		"by a clock that is far ahead": {began.Add(time.Hour), settling},
	} {
		t.Run(name, func(t *testing.T) {
			now := began
			world := &cluster{rules: []rbacv1.PolicyRule{rule("create", "example.com", "queues")}, served: []*metav1.APIResourceList{serving("v1", "pods"), serving("example.com/v1", "queues")}}
			if !c.defined.IsZero() {
				world.defined = map[string]time.Time{"queues.example.com": c.defined}
			}
			k := &Kinds{Roles: world, Definitions: world, Served: world, Now: func() time.Time { return now }}
			world.lost = errors.New("the API server is away")
			if kinds, err := k.List(t.Context()); !errors.Is(err, world.lost) || kinds != nil {
				t.Errorf("without the definitions: got %v, %v", kinds, err)
			}
			world.lost = nil
			for _, at := range []time.Duration{0, c.counted - time.Second, c.counted} {
				if at < 0 {
					continue
				}
				want := []string{"pods"}
				if at >= c.counted {
					want = append(want, "queues.example.com")
				}
				now = began.Add(at)
				if diff := cmp.Diff(want, names(t, k)); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", at, diff)
				}
			}
		})
	}
}

// TestANewKindIsCountedWhenKubernetesKnowsIt installs a kind: a quota that counts it at once would have every object of it refused.
func TestANewKindIsCountedWhenKubernetesKnowsIt(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	world := &cluster{rules: []rbacv1.PolicyRule{rule("create", "example.com", "queues")}, served: []*metav1.APIResourceList{serving("v1", "pods")}}
	k := &Kinds{Roles: world, Definitions: world, Served: world, Now: func() time.Time { return now }}
	expect := func(when string, want ...string) {
		t.Helper()
		now = now.Add(fresh)
		if diff := cmp.Diff(want, names(t, k)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("before", "pods")
	world.served = append(world.served, serving("example.com/v1", "queues"))
	expect("at once", "pods")
	now = now.Add(settling - 2*fresh)
	expect("a moment too early", "pods")
	expect("two minutes later", "pods", "queues.example.com")

	world.served, world.err = world.served[:1], &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("down")}}
	expect("while its server is down", "pods", "queues.example.com")
	world.err = nil
	expect("when it is gone", "pods")

	world.served = append(world.served, serving("example.com/v1", "queues"))
	expect("when it is there again", "pods")
	now = now.Add(settling)
	expect("long after that", "pods", "queues.example.com")
	world.served = world.served[:1]
	expect("when it is gone again", "pods")

	world.err = errors.New("offline")
	now = now.Add(fresh)
	if _, err := k.List(t.Context()); err == nil {
		t.Error("that nothing is known is no answer")
	}
	world.err, world.served = nil, []*metav1.APIResourceList{serving("v1", "pods"), serving("a/b/c", "pods")}
	if kinds, err := k.List(t.Context()); err == nil {
		t.Errorf("a version that cannot be read: got %v", kinds)
	}
	world.served, world.away = world.served[:1], errors.New("no API server")
	now = now.Add(fresh)
	if kinds, err := k.List(t.Context()); !errors.Is(err, world.away) || kinds != nil {
		t.Errorf("a role that cannot be read: got %v, %v", kinds, err)
	}
	world.absent = true
	expect("without the role", "pods")

	world.err = errors.New("offline")
	if kinds, err := k.List(t.Context()); err != nil || len(kinds) != 1 {
		t.Errorf("what was found out within the last second is not found out again: %v, %v", kinds, err)
	}
}
