package controllers

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// foreignManifests are objects whose author chose the namespace "theirs". %s is the name of each.
const foreignManifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s, namespace: theirs}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: theirs}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: theirs}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: theirs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: theirs}]
`

// foreignApps are a Helm app "chart" and a Raw app "folder" with these objects. The folder has a Namespace too.
func foreignApps(target string) map[string]string {
	const app = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n%s"
	if target != "" {
		target = "  targetNamespace: " + target + "\n"
	}
	const apps = "projects/shop/apps/"
	return map[string]string{
		apps + "chart/app.yaml":               fmt.Sprintf(app, "chart", target) + "  type: Helm\n  helm: {path: chart}\n",
		apps + "chart/chart/Chart.yaml":       chartFile,
		apps + "chart/chart/templates/a.yaml": fmt.Sprintf(foreignManifests, "chart"),
		apps + "folder/app.yaml":              fmt.Sprintf(app, "folder", target) + "  type: Raw\n  raw: {path: manifests}\n",
		apps + "folder/manifests/a.yaml":      fmt.Sprintf(foreignManifests, "folder") + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}\n",
	}
}

// TestTargetNamespaceReplacesAnAuthorsNamespace delivers a chart and a folder that name a namespace: refused without targetNamespace or with
// that of someone else, and delivered into the project's with it.
func TestTargetNamespaceReplacesAnAuthorsNamespace(t *testing.T) {
	n := newTeam(t, "retargeted")
	files := shopFiles("shop")
	maps.Copy(files, foreignApps(""))
	n.push(files)
	chart, folder := n.app("shop", "chart"), n.app("shop", "folder")
	for _, app := range []*v1alpha1.App{chart, folder} {
		why := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
		if want := "set spec.targetNamespace of the App to " + n.namespace(); !strings.Contains(why, want) {
			t.Errorf("%s says %q, want %q", app.Name, why, want)
		}
	}
	n.push(foreignApps("kube-system"))
	for _, app := range []*v1alpha1.App{chart, folder} {
		n.eventually(func() error {
			why := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
			if want := "is for namespace kube-system; this app's is " + n.namespace(); !strings.Contains(why, want) {
				return fmt.Errorf("%s says %q, want %q", app.Name, why, want)
			}
			return nil
		})
	}
	n.push(foreignApps(n.namespace()))
	n.ready(chart, folder)
	for _, app := range []string{"chart", "folder"} {
		binding := &rbacv1.RoleBinding{}
		at := client.ObjectKey{Namespace: n.namespace(), Name: app}
		for _, o := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &rbacv1.Role{}, binding} {
			if err := n.admin.Get(t.Context(), at, o); err != nil {
				t.Error(err)
			}
		}
		if len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != n.namespace() {
			t.Errorf("the binding of %s is for %v", app, binding.Subjects)
		}
	}
	n.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}})
}
