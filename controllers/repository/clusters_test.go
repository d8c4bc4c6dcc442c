package repository

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// placing is a cluster named west, the default one, and one named east, for the tenant acme, which may use both.
func placing(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	k := newCluster(t, append(objects,
		&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.ClusterSpec{Default: true}}, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Clusters: []string{"west", "east"}}})...)
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	own, west := *r, "west"
	own.Placement.Cluster = &west
	k.Tree = &own
	return k
}

// placed reads a commit of acme's repository with one project, as the operator does.
func (c *cluster) placed(spec string) *tree.Tree {
	c.t.Helper()
	r, err := c.reader(c.t.Context(), "acme")
	if err != nil {
		c.t.Fatal(err)
	}
	files := fstest.MapFS{"kubeop.yaml": {Data: []byte("layout: v1\n")}, "projects/shop/project.yaml": {Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec: {" + spec + "}\n")}}
	return r.Read(memory{MapFS: files}, tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
}

// TestAProjectThatMovesToAnotherClusterIsHeld, even if it has nothing: only a person knows when the other cluster serves.
func TestAProjectThatMovesToAnotherClusterIsHeld(t *testing.T) {
	k := placing(t, fromAcme(project("kubeop-acme", "shop")))
	now := k.placed("cluster: east")
	s := k.scope(now, "acme/shop")
	lost, _, err := k.lost(t.Context(), s)
	if err != nil || len(lost) != 1 {
		t.Fatalf("lost are %v, %v", lost, err)
	}
	verdict, err := k.verdict(t.Context(), s, lost, "")
	if err != nil || len(verdict.Go) > 0 || verdict.Why != "it places project acme/shop on cluster east, and nothing of what it has here goes along" {
		t.Errorf("%v: %+v", err, verdict)
	}
	if s.foreign(map[identity.Ref]string{ref("acme/shop"): ""}) {
		t.Error("the commit counts as that of another repository")
	}
	if verdict, err = k.verdict(t.Context(), s, lost, verdict.Token); err != nil || len(verdict.Go) != 1 || len(verdict.Held) > 0 {
		t.Errorf("confirmed: %v: %+v", err, verdict)
	}
	s.cluster = "west"
	s.Record()
	if status := s.repository.Status; status.Cluster != "west" || status.ProjectsElsewhere != 1 || !strings.HasSuffix(s.Summary(), "0 projects, 0 apps; 1 project on other clusters") {
		t.Errorf("the status is %+v: %s", status, s.Summary())
	}
	if stays := k.placed(""); stays.ProjectsElsewhere() != 0 || stays.Elsewhere(ref("acme/shop")) != "" {
		t.Error("a project of this cluster is on another one")
	}
}

// TestATreeIsReadAgainWhenTheClustersChange, or those of its tenant.
func TestATreeIsReadAgainWhenTheClustersChange(t *testing.T) {
	k := placing(t)
	made := k.placed("")
	same := func() bool {
		r, err := k.reader(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		return r.Made(made)
	}
	if !same() {
		t.Error("it is read again though nothing changed")
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		t.Fatal(err)
	}
	was := tenant.DeepCopy()
	tenant.Spec.Clusters = []string{"east"}
	if err := k.api.Update(t.Context(), tenant); err != nil || same() || !termsChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: tenant}) {
		t.Errorf("the tenant's clusters changed: %v", err)
	}
	made = k.placed("")
	k.create(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "north"}})
	if same() {
		t.Error("a cluster was added")
	}
	k.create(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	if got := k.all(t.Context(), nil); len(got) != 1 || got[0].NamespacedName != (types.NamespacedName{Name: "acme"}) {
		t.Errorf("woken are %v", got)
	}
	for _, kind := range []string{".ClusterList", ".Tenant"} {
		k.fails = kind
		if _, err := k.reader(t.Context(), "acme"); !errors.Is(err, errAway) {
			t.Errorf("%s cannot be read: %v", kind, err)
		}
	}
	k.fails = ".Project"
	if got, err := k.inCache(t.Context(), ref("acme/shop")); !errors.Is(err, errAway) || got != nil {
		t.Errorf("an object that cannot be read: %v, %v", got, err)
	}
	k.fails = ""
	if got, err := k.inCache(t.Context(), ref("acme/shop")); got != nil || err != nil {
		t.Errorf("an object that is not there: %v, %v", got, err)
	}
	if diff := cmp.Diff([]string{}, append([]string{}, k.patches...)); diff != "" {
		t.Errorf("something was written: %s", diff)
	}
}
