package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// mayHave waits until the quota of a project allows between least and most ConfigMaps.
func (n *team) mayHave(project string, least, most int64) *corev1.ResourceQuota {
	n.t.Helper()
	quota := &corev1.ResourceQuota{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: "kubeop"}, quota); err != nil {
			return err
		}
		if hard := quota.Spec.Hard["count/configmaps"]; hard.Value() < least || hard.Value() > most {
			return fmt.Errorf("the quota of %s allows %s ConfigMaps, want %d to %d", project, hard.String(), least, most)
		}
		return nil
	})
	return quota
}

// TestProjectsShareTheirTenantsPartOfTheStore: the limit of 3Mi is 96 ConfigMaps. 70 in one project leave few to the other, whose app reports it.
func TestProjectsShareTheirTenantsPartOfTheStore(t *testing.T) {
	n := newTeam(t, "storing")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.StoreBytes = ptr.To(resource.MustParse("3Mi")) })
	files := shopFiles("shop")
	files["projects/blog/project.yaml"] = fmt.Sprintf(projectFile, "blog")
	files["projects/blog/apps/web/app.yaml"] = fmt.Sprintf(rawFile, "web", "web", "hello")
	n.push(files)
	n.ready(n.app("blog", "web"))
	calm := n.mayHave("blog", 500, 500)
	for i := range 70 {
		n.create(n.object("kubeop-storing-shop", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}", i)))
	}
	few := n.mayHave("blog", 3, 30)
	n.mayHave("shop", 70, 100)
	if cpu, was := few.Spec.Hard["requests.cpu"], calm.Spec.Hard["requests.cpu"]; cpu.Cmp(was) != 0 {
		t.Errorf("the CPU quota changed from %s to %s", was.String(), cpu.String())
	}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-storing", Name: "blog"}}
	n.eventually(func() error {
		if message := n.until(project, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); !strings.Contains(message, "near spec.limits.storeBytes") {
			return fmt.Errorf("the message of the project is %q", message)
		}
		return nil
	})

	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: y%d}}", i))
	}
	n.push(map[string]string{"projects/blog/apps/bad/app.yaml": rawApp(many...)["app.yaml"]})
	bad := n.app("blog", "bad")
	n.eventually(func() error {
		message := n.until(bad, v1alpha1.AppliedCondition, metav1.ConditionFalse, "")
		for _, want := range []string{"exceeded quota: kubeop", "all objects of tenant storing may take 3Mi", "spec.limits.storeBytes of the Tenant"} {
			if !strings.Contains(message, want) {
				return fmt.Errorf("the message of the app does not contain %q: %s", want, message)
			}
		}
		return nil
	})
	n.eventually(func() error {
		used, may := n.gauges("kubeop_tenant_used")["storeBytes"], n.gauges("kubeop_tenant_limit")["storeBytes"]
		if may != 3<<20 || used < 0.9*may || used > 1.1*may {
			return fmt.Errorf("used %v of %v", used, may)
		}
		return nil
	})
	// Kubernetes soon counts the deletion, and the remainder is shared again.
	for i := range 70 {
		if err := n.admin.Delete(t.Context(), n.object("kubeop-storing-shop", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}", i))); err != nil {
			t.Fatal(err)
		}
	}
	n.mayHave("blog", 500, 500)
	n.reconcile(bad)
	n.ready(bad)
}

func TestATenantThatMayTakeMoreOfTheStoreIsNotLowered(t *testing.T) {
	n := newTeam(t, "storing2")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.StoreBytes = ptr.To(resource.MustParse("1Mi")) })
	n.push(shopFiles("shop"))
	n.eventually(func() error {
		return n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-storing2-shop", Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	for i := range 20 {
		n.create(n.object("kubeop-storing2-shop", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: x%d}}", i)))
	}
	n.mayHave("shop", 20, 60)
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.StoreBytes = nil })
	n.mayHave("shop", 500, 500)
}
