package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// shopChart holds a ConfigMap, a Service with its port from the values, and a Deployment with its replicas from the values: there is no
// node, so with one replica or more it never becomes healthy.
var shopChart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: \"1.0\"\n",
	"values.yaml": "greeting: hello\nport: 80\nreplicas: 0\n",
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  greeting: {{ .Values.greeting }}
`,
	"templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: {{ .Values.port }}}]
`,
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      automountServiceAccountToken: false
      containers:
        - name: web
          image: registry.example.com/web
          securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
`,
}

// helmApp is the app "web" of the project "shop" with the chart beside it; helm has the other fields of spec.helm.
func helmApp(helm string) map[string]string {
	const folder = "projects/shop/apps/web/"
	files := shopFiles("shop")
	files[folder+"app.yaml"] = fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec:\n  type: Helm\n  retryInterval: 1s\n  helm: {path: chart, %s}\n", helm)
	for name, content := range shopChart {
		files[folder+"chart/"+name] = content
	}
	return files
}

// correcting is a Helm app with the given drift mode.
func correcting(drift string) map[string]string {
	files := helmApp("values: {greeting: one}")
	files["projects/shop/apps/web/app.yaml"] += "  drift: " + drift + "\n"
	return files
}

// greets waits until the release's ConfigMap has the greeting.
func (n *team) greets(greeting string) {
	n.t.Helper()
	n.eventually(func() error {
		config := &corev1.ConfigMap{}
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "web"}, config); err != nil {
			return err
		}
		if config.Data["greeting"] != greeting {
			return fmt.Errorf("the greeting is %q, want %q", config.Data["greeting"], greeting)
		}
		return nil
	})
}

func (n *team) namespace() string { return v1alpha1.ProjectNamespace(n.name, "shop") }

// helm runs the helm command in the project's namespace.
func (n *team) helm(args ...string) string {
	n.t.Helper()
	out, err := env.Helm(n.t.Context(), append(args, "--namespace", n.namespace())...)
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// history is the release's, oldest first, as "revision status".
func (n *team) history(app *v1alpha1.App) []string {
	n.t.Helper()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, s := range app.Status.History {
		out = append([]string{fmt.Sprintf("%d %s", s.Revision, s.Status)}, out...)
	}
	return out
}

func (n *team) annotate(app *v1alpha1.App, key, value string) {
	n.t.Helper()
	before := app.DeepCopy()
	metav1.SetMetaDataAnnotation(&app.ObjectMeta, key, value)
	if err := n.admin.Patch(n.t.Context(), app, client.MergeFrom(before)); err != nil {
		n.t.Fatal(err)
	}
}

func TestAChangedValuesObjectUpgradesTheApp(t *testing.T) {
	n := newTeam(t, "values")
	n.push(helmApp("valuesFrom: [{kind: ConfigMap, name: settings}, {kind: Secret, name: more, valuesKey: word, targetPath: greeting, optional: true}]"))
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ValuesFailedReason)
	if want := "ConfigMap settings does not exist"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q in it", message, want)
	}
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "settings"}, Data: map[string]string{"values.yaml": "greeting: one"},
	}
	n.create(settings)
	n.ready(app)
	n.greets("one")
	settings.Data["values.yaml"] = "greeting: two"
	changed := time.Now()
	if err := n.admin.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	n.greets("two")
	t.Logf("a changed ConfigMap was released after %s", time.Since(changed))
	n.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "more"}, StringData: map[string]string{"word": "three"}})
	n.greets("three")
	n.eventually(func() error {
		if got := n.history(app); len(got) != 3 {
			return fmt.Errorf("the history is %v, want a revision for each of three changes", got)
		}
		return nil
	})
}

func TestABadUpgradeIsRolledBackAndHeld(t *testing.T) {
	n := newTeam(t, "held")
	app := n.app("shop", "web")
	n.push(helmApp("values: {greeting: one}"))
	n.ready(app)
	n.push(helmApp("values: {greeting: bad, port: 99999}"))
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.HeldReason)
	for _, want := range []string{"failed 2 times", "rolled back to revision 1", "Service", "99999", "forceAt"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message of Ready does not contain %q: %s", want, message)
		}
	}
	if !conditions.IsTrue(app, v1alpha1.RemediatedCondition) || !conditions.IsStalled(app) {
		t.Errorf("want Stalled and Remediated; the conditions are %+v", app.Status.Conditions)
	}
	if diff := cmp.Diff([]string{"1 superseded", "2 failed", "3 failed", "4 deployed"}, n.history(app)); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
	n.greets("one")

	before := n.settled()
	n.reconcile(app)
	if diff := cmp.Diff(withoutQuotas(before), withoutQuotas(n.resourceVersions())); diff != "" {
		t.Errorf("a held app was changed (-before +after):\n%s", diff)
	}
	n.annotate(app, meta.ForceRequestAnnotation, "1")
	n.eventually(func() error {
		if got := n.history(app); len(got) != 5 || got[4] != "6 deployed" {
			return fmt.Errorf("the history is %v", got)
		}
		return nil
	})
	n.push(helmApp("values: {greeting: good}"))
	n.ready(app)
	n.greets("good")
	if conditions.Has(app, v1alpha1.RemediatedCondition) {
		t.Errorf("the condition Remediated was not removed: %+v", app.Status.Conditions)
	}
}

// TestAnUnhealthyUpgradeIsRolledBack also checks that a fix is applied during a bad rollout.
func TestAnUnhealthyUpgradeIsRolledBack(t *testing.T) {
	n := newTeam(t, "sick")
	app := n.app("shop", "web")
	n.push(helmApp("values: {greeting: one}"))
	n.ready(app)
	n.push(helmApp("values: {greeting: sick, replicas: 1}"))
	n.until(app, v1alpha1.HealthyCondition, metav1.ConditionUnknown, v1alpha1.ProgressingReason)
	n.push(helmApp("values: {greeting: fixed}"))
	fixed := time.Now()
	n.greets("fixed")
	t.Logf("a fix during a bad rollout was released after %s", time.Since(fixed))
	n.ready(app)

	n.push(helmApp("values: {greeting: sick, replicas: 1}, upgrade: {timeout: 2s}, remediation: {retries: 0}"))
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.HeldReason)
	if want := "not healthy within 2s (spec.helm.upgrade.timeout): Deployment/web"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q in it", message, want)
	}
	n.greets("fixed")
}

func TestHelmCommandsOfUsersAreDetected(t *testing.T) {
	n := newTeam(t, "byhand")
	app := n.app("shop", "web")
	for _, greeting := range []string{"one", "two"} {
		n.push(helmApp("values: {greeting: " + greeting + "}"))
		n.greets(greeting)
		n.ready(app)
	}
	n.helm("rollback", "web", "1")
	n.eventually(func() error {
		if got := n.history(app); len(got) != 4 || got[3] != "4 deployed" {
			return fmt.Errorf("the history is %v", got)
		}
		return nil
	})
	n.greets("two")
	for _, c := range []struct{ command, want string }{
		{"status web", "STATUS: deployed"}, {"history web", "Upgrade complete"}, {"get values web", "greeting: two"},
		{"get manifest web", "greeting: two"}, {"list", "shop-0.1.0"},
	} {
		if out := n.helm(strings.Fields(c.command)...); !strings.Contains(out, c.want) {
			t.Errorf("the output of helm %s does not contain %q:\n%s", c.command, c.want, out)
		}
	}
}

func TestDriftOfAReleaseIsReportedOrCorrected(t *testing.T) {
	n := newTeam(t, "drift")
	app := n.app("shop", "web")
	n.push(helmApp("values: {greeting: one}"))
	n.ready(app)
	edit := func(greeting string) {
		t.Helper()
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "web"}}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"greeting":"`+greeting+`"}}`))
		if err := n.admin.Patch(t.Context(), config, patch, client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
	}
	edit("edited")
	message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionTrue, v1alpha1.DriftDetectedReason)
	if !strings.Contains(message, "ConfigMap/web") || !strings.Contains(message, "greeting") {
		t.Errorf("the message of Drifted is %q", message)
	}
	if !conditions.IsReady(app) {
		t.Errorf("the app is not Ready: %+v", app.Status.Conditions)
	}
	n.push(correcting("{mode: Correct}"))
	n.greets("one")
	edit("edited again")
	n.until(app, v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.DriftCorrectedReason)
	n.greets("one")
	n.push(correcting("{mode: Correct, ignore: [{paths: [/data/greeting], target: {kind: ConfigMap}}]}"))
	n.eventually(func() error {
		n.ready(app)
		if len(app.Spec.Drift.Ignore) == 0 {
			return errors.New("the message does not yet name the fields to ignore")
		}
		return nil
	})
	edit("let be")
	n.reconcile(app)
	n.greets("let be")
	if got := n.history(app); len(got) != 1 {
		t.Errorf("correcting drift made new revisions: %v", got)
	}
}

func TestARenamedReleaseReplacesTheOldOne(t *testing.T) {
	n := newTeam(t, "renamed")
	app := n.app("shop", "web")
	n.push(helmApp("values: {greeting: one}"))
	n.ready(app)
	n.push(helmApp("values: {greeting: one}, releaseName: site"))
	n.eventually(func() error {
		if out := n.helm("list", "--all", "--short"); out != "site\n" {
			return fmt.Errorf("the releases are %q, want %q", out, "site\n")
		}
		return nil
	})
	n.ready(app)
	if got := app.Status.Release; got.Name != "site" || got.Deployed != 1 {
		t.Errorf("status.release is %+v", got)
	}
	gone := &corev1.ConfigMap{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "web"}, gone); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the old release's ConfigMap still exists: %v", err)
	}
}

// TestARenamedHelmAppTakesOverItsRelease: it is not refused until its interval, although its release belongs to the old App at first.
func TestARenamedHelmAppTakesOverItsRelease(t *testing.T) {
	n := newTeam(t, "renaming")
	files := helmApp("values: {greeting: one}, releaseName: site")
	n.push(files)
	n.ready(n.app("shop", "web"))
	renamed := map[string]string{}
	for path, content := range files {
		renamed[strings.Replace(path, "/web/", "/shop/", 1)] = strings.Replace(content, "{name: web}", "{name: shop}", 1)
	}
	n.push(without(renamed, "web"))
	app := n.app("shop", "shop")
	n.ready(app)
	if got := app.Status.Release; got.Name != "site" {
		t.Errorf("status.release is %+v", got)
	}
}

func TestTheChartsTestsRunOnceForEachRevision(t *testing.T) {
	n := newTeam(t, "tested")
	app := n.app("shop", "web")
	files := helmApp("values: {greeting: one}, test: {enable: true}")
	files["projects/shop/apps/web/chart/templates/test.yaml"] = `apiVersion: v1
kind: ConfigMap
metadata:
  name: tried-{{ .Release.Revision }}
  annotations: {helm.sh/hook: test}
`
	n.push(files)
	n.ready(app)
	n.until(app, v1alpha1.TestSuccessCondition, metav1.ConditionTrue, "")
	if got := app.Status.History[0].Test; got != "Succeeded" || !app.Status.Release.Proven {
		t.Errorf("the tests ended with %q; %+v", got, app.Status.Release)
	}
	before := n.settled()
	n.reconcile(app)
	if diff := cmp.Diff(withoutQuotas(before), withoutQuotas(n.resourceVersions())); diff != "" {
		t.Errorf("tests ran again (-before +after):\n%s", diff)
	}
}
