package controllers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const clusterRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: taken-over}, rules: []}`

const index = `apiVersion: v1
entries:
  hello:
  - {name: hello, version: 0.1.0, urls: [hello-0.1.0.tgz]}
`

// rawApp is an app of the given manifests.
func rawApp(manifests ...string) map[string]string {
	list := ""
	for _, m := range manifests {
		list += "    - " + m + "\n"
	}
	return appOf("spec:\n  type: Raw\n  raw:\n    manifests:\n" + list)
}

// chartApp is an app of a chart with one template.
func chartApp(template string) map[string]string {
	files := appOf("spec:\n  type: Helm\n  helm: {path: chart}\n")
	files["chart/Chart.yaml"] = chartFile
	files["chart/templates/one.yaml"] = template
	return files
}

func appOf(spec string) map[string]string {
	return map[string]string{"app.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata:\n  name: bad\n" + spec}
}

// TestAnAppThatCannotBeDeliveredReportsTheReason pushes such apps one after the other beside a good one. The app reports the reason, none of
// its objects exist, and the repository and the good app stay ready.
func TestAnAppThatCannotBeDeliveredReportsTheReason(t *testing.T) {
	n := newTeam(t, "refused")
	charts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, index)
	}))
	t.Cleanup(charts.Close)
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	good := n.configMap("shop", "web").ResourceVersion

	cases := map[string]struct {
		files             map[string]string
		condition, reason string
		want              []string
	}{
		"a ClusterRole":            {rawApp(clusterRole), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"ClusterRole/taken-over", "cluster-scoped"}},
		"a ClusterRole in a List":  {rawApp("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [" + clusterRole + "]}]}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"ClusterRole/taken-over"}},
		"a foreign namespace":      {rawApp("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: kube-system}}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"ConfigMap/x", "kube-system"}},
		"our own kinds":            {rawApp("{apiVersion: paas.kubeop.io/v1alpha1, kind: App, metadata: {name: x}, spec: {type: Raw}}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"App/x", "paas.kubeop.io"}},
		"our own labels":           {rawApp("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {paas.kubeop.io/tenant: road}}}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"ConfigMap/x", "paas.kubeop.io/tenant"}},
		"a quota of its own":       {rawApp("{apiVersion: v1, kind: ResourceQuota, metadata: {name: kubeop}}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"ResourceQuota/kubeop"}},
		"an unknown kind":          {rawApp("{apiVersion: example.com/v1, kind: Widget, metadata: {name: x}}"), v1alpha1.AllowedCondition, v1alpha1.NotAllowedReason, []string{"Widget/x"}},
		"an invalid object":        {rawApp("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {not/a/key: x}}"), v1alpha1.AppliedCondition, v1alpha1.ApplyFailedReason, []string{"ConfigMap/x", "not/a/key"}},
		"a ClusterRole in a chart": {chartApp(clusterRole), v1alpha1.ReleasedCondition, v1alpha1.NotAllowedReason, []string{"ClusterRole/taken-over"}},
		"a ClusterRole in a hook":  {chartApp(strings.Replace(clusterRole, "{name: taken-over}", "{name: taken-over, annotations: {helm.sh/hook: pre-install}}", 1)), v1alpha1.ReleasedCondition, v1alpha1.NotAllowedReason, []string{"ClusterRole/taken-over"}},
		"a chart that fails":       {chartApp(`{{ fail "set the greeting" }}`), v1alpha1.ReleasedCondition, v1alpha1.RenderFailedReason, []string{"set the greeting"}},
		"an unknown chart":         {appOf("spec: {type: Helm, helm: {repository: \"" + charts.URL + "\", chart: nothing}}\n"), v1alpha1.SourceReadyCondition, v1alpha1.SourceNotFoundReason, []string{"nothing", charts.URL}},
		"an unknown version":       {appOf("spec: {type: Helm, helm: {repository: \"" + charts.URL + "\", chart: hello, version: 2.x}}\n"), v1alpha1.SourceReadyCondition, v1alpha1.SourceNotFoundReason, []string{"hello", "2.x", "0.1.0"}},
		"an archive that is gone":  {appOf("spec: {type: Helm, helm: {repository: \"" + charts.URL + "\", chart: hello}}\n"), v1alpha1.SourceReadyCondition, v1alpha1.SourceNotFoundReason, []string{"hello", "0.1.0", "404"}},
		"no Git there":             {appOf("spec: {type: Git, git: {url: \"" + env.GitURL + "/nowhere.git\"}}\n"), v1alpha1.SourceReadyCondition, "", []string{env.GitURL + "/nowhere.git"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for file, content := range c.files {
				files["projects/shop/apps/bad/"+file] = content
			}
			n.push(files)
			bad := n.app("shop", "bad")
			message := n.until(bad, c.condition, metav1.ConditionFalse, c.reason)
			for _, want := range c.want {
				if !strings.Contains(message, want) {
					t.Errorf("the message does not contain %q: %s", want, message)
				}
			}
			if held := bad.Status.Inventory.Entries; len(held) != 0 {
				t.Errorf("objects of the refused app were applied: %v", held)
			}
			n.push(map[string]string{"projects/shop/apps/bad": "-"})
			n.gone(bad)
		})
	}
	roles := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "taken-over"}}
	n.gone(roles)
	if n.configMap("shop", "web").ResourceVersion != good {
		t.Error("the good app was changed")
	}
	n.ready(n.repository(), n.app("shop", "web"))
}

// TestAChartCannotShowASecret: a chart fails with a value that came from a Secret.
func TestAChartCannotShowASecret(t *testing.T) {
	n := newTeam(t, "telling")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	const password = "s3cr3t-Passw0rd"
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-telling-shop", Name: "database"},
		StringData: map[string]string{"values.yaml": "database: {password: " + password + "}\n"},
	})
	files := map[string]string{}
	app := appOf("spec:\n  type: Helm\n  helm: {path: chart, valuesFrom: [{kind: Secret, name: database}]}\n")
	app["chart/Chart.yaml"] = chartFile
	app["chart/templates/one.yaml"] = `{{ fail (printf "cannot use %s here" .Values.database.password) }}`
	for file, content := range app {
		files["projects/shop/apps/bad/"+file] = content
	}
	n.push(files)
	message := n.until(n.app("shop", "bad"), v1alpha1.ReleasedCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if !strings.Contains(message, "cannot use") || strings.Contains(message, password) {
		t.Errorf("the message is %s", message)
	}
	if strings.Contains(n.log(), password) {
		t.Error("the log shows the password")
	}
}
