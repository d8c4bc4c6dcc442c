package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
)

const refusedFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata:
  name: %s
spec:
  type: Raw
  raw:
    manifests:
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      metadata: {name: everything}
`

// TestATenantAndItsProjectsSayHowManyAppsAreReady has an app broken and mended beside others. Ready of their Project and Tenant stays True, and the
// apps do not wake one another.
func TestATenantAndItsProjectsSayHowManyAppsAreReady(t *testing.T) {
	n := newTeam(t, "rolls")
	files := shopFiles("shop", "web", "api")
	n.push(files)
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-rolls", Name: "shop"}}
	owner := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "rolls"}}
	n.until(shop, v1alpha1.AppsReadyCondition, metav1.ConditionTrue, v1alpha1.SucceededReason)
	n.until(owner, v1alpha1.AppsReadyCondition, metav1.ConditionTrue, v1alpha1.SucceededReason)
	if shop.Status.AppsReady != "2/2" || owner.Status.AppsReady != "2/2" {
		t.Fatalf("the project has %q, the tenant %q", shop.Status.AppsReady, owner.Status.AppsReady)
	}
	web := n.app("shop", "web")
	n.ready(web)
	before := web.ResourceVersion

	files["projects/shop/apps/bad/app.yaml"] = fmt.Sprintf(refusedFile, "bad")
	n.push(files)
	inProject := n.until(shop, v1alpha1.AppsReadyCondition, metav1.ConditionFalse, v1alpha1.AppsNotReadyReason)
	ofTenant := n.until(owner, v1alpha1.AppsReadyCondition, metav1.ConditionFalse, v1alpha1.AppsNotReadyReason)
	if want := "1 of 3 apps are not ready; bad: NotAllowed: "; !strings.HasPrefix(inProject, want) {
		t.Errorf("the project says %q, want %q", inProject, want)
	}
	if want := "1 of 3 apps are not ready; shop/bad: NotAllowed: "; !strings.HasPrefix(ofTenant, want) {
		t.Errorf("the tenant says %q, want %q", ofTenant, want)
	}
	if shop.Status.AppsReady != "2/3" || owner.Status.AppsReady != "2/3" || !conditions.IsReady(shop) || !conditions.IsReady(owner) {
		t.Errorf("the project has %q, the tenant %q; ready: %t, %t", shop.Status.AppsReady, owner.Status.AppsReady, conditions.IsReady(shop), conditions.IsReady(owner))
	}
	if n.ready(web); web.ResourceVersion != before {
		t.Error("an app was written because another one is broken")
	}
	n.push(shopFiles("shop", "bad"))
	n.until(owner, v1alpha1.AppsReadyCondition, metav1.ConditionTrue, v1alpha1.SucceededReason)
}

// TestManyAppsCostFewWritesOfTheirProject counts the versions of a project and its tenant while forty apps become ready.
func TestManyAppsCostFewWritesOfTheirProject(t *testing.T) {
	n := newTeam(t, "throng")
	n.push(shopFiles("shop", "web"))
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-throng", Name: "shop"}}
	n.until(shop, v1alpha1.AppsReadyCondition, metav1.ConditionTrue, "")
	direct, err := client.NewWithWatch(env.Config, client.Options{Scheme: n.admin.Scheme(), Mapper: n.admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := direct.Watch(t.Context(), &v1alpha1.ProjectList{}, client.InNamespace("kubeop-throng"))
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("web-%d", i))
	}
	began := time.Now()
	n.push(shopFiles("shop", names...))
	writes := 0
	for shop.Status.AppsReady != "41/41" {
		select {
		case e := <-seen.ResultChan():
			if is, ok := e.Object.(*v1alpha1.Project); ok && e.Type == watch.Modified {
				writes++
				shop = is
			}
		case <-time.After(time.Minute):
			t.Fatalf("after %d writes the project has %q", writes, shop.Status.AppsReady)
		}
	}
	// A write when apps come or go, one second later at the earliest, and one of the push itself.
	if most := 3 + int(2*time.Since(began)/rollup.Pause); writes > most {
		t.Errorf("the project was written %d times within %s, want at most %d", writes, time.Since(began), most)
	}
}
