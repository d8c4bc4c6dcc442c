package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// usualDeployment is a Deployment as in most charts: it has none of the fields that Pod Security "restricted" asks for. %s is its name.
const usualDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      automountServiceAccountToken: false
      initContainers: [{name: setup, image: registry.example.com/setup}]
      containers: [{name: web, image: registry.example.com/web}]
`

// usualApps are two apps with that Deployment: "chart" of a chart, and "folder" of a folder of manifests.
func usualApps(spec string) map[string]string {
	files := shopFiles("shop")
	const header = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n"
	files["projects/shop/apps/chart/app.yaml"] = fmt.Sprintf(header, "chart") + spec + "  type: Helm\n  helm: {path: chart}\n"
	files["projects/shop/apps/chart/chart/Chart.yaml"] = chartFile
	files["projects/shop/apps/chart/chart/templates/web.yaml"] = fmt.Sprintf(usualDeployment, "chart")
	files["projects/shop/apps/folder/app.yaml"] = fmt.Sprintf(header, "folder") + spec + "  type: Raw\n  raw: {path: manifests}\n"
	files["projects/shop/apps/folder/manifests/web.yaml"] = fmt.Sprintf(usualDeployment, "folder")
	return files
}

// TestUsualPodsPassRestricted delivers pods that the namespace admits only with the fields that kubeop fills in.
func TestUsualPodsPassRestricted(t *testing.T) {
	n := newTeam(t, "filled")
	n.push(usualApps(""))
	chart, folder := n.app("shop", "chart"), n.app("shop", "folder")
	n.ready(chart, folder)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "default"}}
	if err := client.IgnoreAlreadyExists(n.admin.Create(t.Context(), account)); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, app := range []*v1alpha1.App{chart, folder} {
		want := []string{"Deployment/" + app.Name + ": seccompProfile, runAsNonRoot; containers setup, web: allowPrivilegeEscalation, capabilities.drop"}
		if diff := cmp.Diff(want, app.Status.Filled); diff != "" {
			t.Errorf("%s: filled (-want +got):\n%s", app.Name, diff)
		}
		live := &appsv1.Deployment{}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), live); err != nil {
			t.Fatal(err)
		}
		versions[app.Name] = live.ResourceVersion
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: app.Name}, Spec: live.Spec.Template.Spec}
		if err := n.admin.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("%s: the namespace refuses its pod: %v", app.Name, err)
		}
		bare := pod.DeepCopy()
		bare.Spec.SecurityContext = nil
		if err := n.admin.Create(t.Context(), bare, client.DryRunAll); err == nil {
			t.Errorf("%s: the namespace admits any pod: the test proves nothing", app.Name)
		}
	}
	if manifest := n.helm("get", "manifest", "chart"); !strings.Contains(manifest, "runAsNonRoot: true") || !strings.Contains(manifest, "- ALL") {
		t.Errorf("helm get manifest shows another manifest than the applied one:\n%s", manifest)
	}
	n.reconcile(chart, folder)
	n.ready(chart, folder)
	for _, app := range []*v1alpha1.App{chart, folder} {
		live := &appsv1.Deployment{}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), live); err != nil || live.ResourceVersion != versions[app.Name] {
			t.Errorf("%s: a reconcile without changes wrote the Deployment, or failed: %v", app.Name, err)
		}
	}
	if got := n.history(chart); len(got) != 1 {
		t.Errorf("the release has revisions %v", got)
	}
}

// TestARefusedPodIsReportedInFull: the author turned filling off.
func TestARefusedPodIsReportedInFull(t *testing.T) {
	n := newTeam(t, "unfilled")
	n.push(usualApps("  podSecurity: {fill: Disabled}\n"))
	for name, in := range map[string]struct{ condition, place string }{
		"chart": {v1alpha1.ReleasedCondition, ""}, "folder": {v1alpha1.AllowedCondition, "manifests/web.yaml:1: "},
	} {
		const ask = "ask an administrator of the cluster to set podSecurity: baseline in tenants/unfilled/tenant.yaml of the platform repository, which allows it"
		want := strings.Join([]string{
			`PLACEDeployment/NAME breaks rule allowPrivilegeEscalation of the Pod Security level restricted: containers "setup", "web" must set securityContext.allowPrivilegeEscalation=false; ` +
				"write securityContext: {allowPrivilegeEscalation: false} in the container, below spec.template.spec",
			`PLACEDeployment/NAME breaks rule capabilities of the Pod Security level restricted: containers "setup", "web" must set securityContext.capabilities.drop=["ALL"]; ` +
				"write securityContext: {capabilities: {drop: [ALL]}} in the container, below spec.template.spec, and no other add than NET_BIND_SERVICE",
			`PLACEDeployment/NAME breaks rule runAsNonRoot of the Pod Security level restricted: pod or containers "setup", "web" must set securityContext.runAsNonRoot=true; ` +
				"write securityContext: {runAsNonRoot: true} in spec.template.spec, and no other in its containers",
			`PLACEDeployment/NAME breaks rule seccompProfile of the Pod Security level restricted: pod or containers "setup", "web" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"; ` +
				"write securityContext: {seccompProfile: {type: RuntimeDefault}} in spec.template.spec, and no other in its containers",
			"for the rules that only level restricted has: " + ask,
		}, "\n")
		app := n.app("shop", name)
		got := n.until(app, in.condition, metav1.ConditionFalse, v1alpha1.NotAllowedReason)
		if diff := cmp.Diff(strings.NewReplacer("PLACE", in.place, "NAME", name).Replace(want), got); diff != "" {
			t.Errorf("%s: message (-want +got):\n%s", name, diff)
		}
		if len(app.Status.Inventory.Entries) > 0 || len(app.Status.Filled) > 0 {
			t.Errorf("%s: something was applied or filled in, want nothing: %+v", name, app.Status)
		}
	}
	n.push(usualApps("  podSecurity: {fill: Enabled}\n"))
	n.ready(n.app("shop", "chart"), n.app("shop", "folder"))
}
