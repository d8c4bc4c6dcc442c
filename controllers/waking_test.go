package controllers

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// patient returns the files of an app "raw" and of an app "web" of type Helm, each with the object, whose name is the app's, and with a long pause after a
// failure.
func patient(object string) map[string]string {
	files := helmApp("values: {greeting: one}")
	files["projects/shop/apps/web/chart/templates/more.yaml"] = strings.Replace(object, "NAME", "web", 1)
	files["projects/shop/apps/web/app.yaml"] = strings.Replace(files["projects/shop/apps/web/app.yaml"], "retryInterval: 1s", "retryInterval: 30m", 1)
	const raw = "projects/shop/apps/raw/app.yaml"
	files[raw] = strings.Replace(rawApp(strings.Replace(object, "NAME", "raw", 1))["app.yaml"], "spec:\n", "spec:\n  retryInterval: 30m\n", 1)
	files[raw] = strings.Replace(files[raw], "name: bad", "name: raw", 1)
	return files
}

// TestARaisedQuotaEndsThePauseOfAppsThatFailedForIt: without that, they would try again half an hour later.
func TestARaisedQuotaEndsThePauseOfAppsThatFailedForIt(t *testing.T) {
	n := newTeam(t, "raised")
	files := patient("{apiVersion: v1, kind: Service, metadata: {name: NAME-more}, spec: {ports: [{port: 80}]}}")
	const project = "projects/shop/project.yaml"
	files[project] = fmt.Sprintf(smallProject, "shop", `count/services: "0"`)
	n.push(files)
	raw, web := n.app("shop", "raw"), n.app("shop", "web")
	n.lacks(raw, v1alpha1.AppliedCondition, "exceeded quota: kubeop")
	n.lacks(web, v1alpha1.ReleasedCondition, "exceeded quota: kubeop")
	n.push(map[string]string{project: fmt.Sprintf(smallProject, "shop", `count/services: "5"`)})
	n.ready(raw, web)
}

// TestAServedKindEndsThePauseOfAppsThatFailedForIt: an administrator installs the CustomResourceDefinition that two apps lack.
func TestAServedKindEndsThePauseOfAppsThatFailedForIt(t *testing.T) {
	n := newTeam(t, "served")
	n.create(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "late-widgets", Labels: map[string]string{
			"paas.kubeop.io/aggregate-to-deployer": "true", "paas.kubeop.io/aggregate-to-watch": "true",
		}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"late.example"}, Resources: []string{"widgets"}, Verbs: []string{rbacv1.VerbAll}}},
	})
	files := patient("{apiVersion: late.example/v1, kind: Widget, metadata: {name: NAME}}")
	n.push(files)
	raw, web := n.app("shop", "raw"), n.app("shop", "web")
	n.lacks(raw, v1alpha1.AllowedCondition, "does not know")
	n.lacks(web, v1alpha1.ReleasedCondition, "does not know")
	n.create(n.object("", strings.ReplaceAll(definition, "bad.example", "late.example")))
	n.ready(raw, web)
}

// lacks waits until the condition of an app is False with these words.
func (n *team) lacks(app *v1alpha1.App, condition, words string) {
	n.t.Helper()
	n.eventually(func() error {
		if got := n.until(app, condition, metav1.ConditionFalse, ""); !strings.Contains(got, words) {
			return fmt.Errorf("app %s says %q, want %q", app.Name, got, words)
		}
		return nil
	})
}
