//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	helmFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %s}
spec:
  type: Helm
  helm: {path: chart, %s}
`
	shopTemplates = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      terminationGracePeriodSeconds: 1
{{ include "pod" (list . .Values.args) | indent 6 }}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1, initialDelaySeconds: {{ .Values.delay }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80, targetPort: 8080}]
`
	// podTemplate is a pod of the sample image with given arguments.
	podTemplate = `{{- define "pod" -}}
{{- $top := index . 0 -}}
automountServiceAccountToken: false
securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
containers:
- name: hello
  image: {{ $top.Values.image }}
  args: {{ index . 1 | toJson }}
  env: [{name: MESSAGE, value: {{ $top.Values.message | quote }}}]
  securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
{{- end -}}
`
	// hookTemplate calls the Service right after the install. It fails unless Helm waited for the pod.
	hookTemplate = `apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-greet, annotations: {helm.sh/hook: post-install}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
{{ include "pod" (list . (list "-get" (printf "http://%s/" .Release.Name))) | indent 6 }}
`
	testTemplate = `apiVersion: v1
kind: Pod
metadata: {name: {{ .Release.Name }}-test, annotations: {helm.sh/hook: test}}
spec:
  restartPolicy: Never
{{ include "pod" (list . (list "-get" (printf "http://%s/%s" .Release.Name .Values.page))) | indent 2 }}
`
)

// chart writes a Helm app with its chart. templates are by file name.
func (n *team) chart(app, helm string, templates map[string]string) {
	n.t.Helper()
	folder := "projects/shop/apps/" + app + "/"
	n.write(folder+"app.yaml", fmt.Sprintf(helmFile, app, helm))
	n.write(folder+"chart/Chart.yaml", chartFile)
	n.write(folder+"chart/values.yaml", "image: "+image("v1")+"\nmessage: hello\npage: ''\ndelay: 0\nargs: []\n")
	n.write(folder+"chart/templates/_pod.tpl", podTemplate)
	n.write(folder+"chart/templates/all.yaml", shopTemplates)
	for name, content := range templates {
		n.write(folder+"chart/templates/"+name, content)
	}
}

// waitForReady waits until the app's Ready has a reason and a message with all parts. It returns the message.
func (n *team) waitForReady(app, reason string, parts ...string) string {
	n.t.Helper()
	var message string
	until(n.t, app+" reports why", func(ctx context.Context) error {
		object := &v1alpha1.App{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: n.namespace(), Name: app}, object); err != nil {
			return err
		}
		for _, c := range object.Status.Conditions {
			if c.Type != v1alpha1.ReadyCondition {
				continue
			}
			message = c.Message
			missing := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return strings.Contains(c.Message, part) })
			if c.Reason == reason && len(missing) == 0 {
				return nil
			}
			return fmt.Errorf("it reports %s: %s; not %q", c.Reason, c.Message, missing)
		}
		return errors.New("it reports nothing yet")
	})
	n.t.Logf("%s: %s: %s", app, reason, message)
	return message
}

// wrongAnswers calls an app's Service repeatedly. The returned function stops that, and returns the wrong answers.
func (n *team) wrongAnswers(app, want string) func() []string {
	ctx, stop := context.WithCancel(n.t.Context())
	var wrong []string
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			got, err := platform.GetService(ctx, n.namespace(), app)
			if ctx.Err() == nil && (err != nil || got != want) {
				wrong = append(wrong, fmt.Sprintf("%s %v", got, err))
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	return func() []string {
		stop()
		done.Wait()
		return wrong
	}
}

func (n *team) helm(args ...string) string {
	n.t.Helper()
	out, err := platform.Helm(n.t.Context(), append(args, "-n", n.namespace())...)
	must(n.t, err)
	return out
}

// TestHelmUpgradeThatCrashes checks that a crashing upgrade is reported with pod, exit code and last log lines, rolled back and
// held. The Service answers all the time. A fix is applied soon, and a change made with helm is reverted to Git.
func TestHelmUpgradeThatCrashes(t *testing.T) {
	n := newTeam(t, "crashing")
	const within = "upgrade: {timeout: 8s}, remediation: {retries: 0}, "
	n.chart("web", within+"values: {message: one}", nil)
	n.push("Ship")
	n.appReady("web")
	n.answers("web", "one")

	wrong := n.wrongAnswers("web", "one")
	n.chart("web", within+"values: {message: two, args: [-crash]}", nil)
	pushed := time.Now()
	n.push("Ship what crashes")
	n.waitForReady("web", v1alpha1.UnhealthyReason, "Deployment/web", "exit code 1", "crashed on purpose")
	t.Logf("the crash was reported %.1f s after the push", time.Since(pushed).Seconds())
	n.waitForReady("web", v1alpha1.HeldReason, "Deployment/web", "not healthy within 8s", "exit code 1", "crashed on purpose", "rolled back to revision 1")
	if took := time.Since(pushed); took > 20*time.Second {
		t.Errorf("it was rolled back after %s, with a timeout of 8 s", took)
	}
	t.Logf("it was held %.1f s after the push\n%s", time.Since(pushed).Seconds(), kubectl(t, "get", "apps", "-n", n.namespace()))
	if bad := wrong(); len(bad) != 0 {
		t.Errorf("visitors noticed: %q", bad)
	}

	n.chart("web", within+"values: {message: three}", nil)
	pushed = time.Now()
	n.push("Mend it")
	n.answers("web", "three")
	t.Logf("the fix was live %.1f s after the push", time.Since(pushed).Seconds())
	n.appReady("web")

	n.helm("rollback", "web", "1")
	until(t, "the release is back at Git's state", func(ctx context.Context) error {
		history, err := platform.Helm(ctx, "history", "web", "-n", n.namespace())
		lines := strings.Split(history, "\n")
		if last := lines[len(lines)-1]; err == nil && !strings.HasPrefix(last, "6") {
			err = fmt.Errorf("the history is\n%s", history)
		}
		return err
	})
	n.answers("web", "three")
	n.appReady("web")
	table := kubectl(t, "get", "apps", "-n", n.namespace())
	history := n.helm("history", "web")
	t.Logf("\n%s\n%s", table, history)
	for _, want := range []string{"Helm", "True", "revision 6"} {
		if !strings.Contains(table, want) {
			t.Errorf("kubectl get apps does not show %q", want)
		}
	}
	for _, want := range []string{"failed", "Rollback to 1", "deployed"} {
		if !strings.Contains(history, want) {
			t.Errorf("helm history does not show %q", want)
		}
	}
}

// TestHelmHookThatNeedsWhatWasInstalled runs a post-install Job that calls the app. It succeeds only with wait.
func TestHelmHookThatNeedsWhatWasInstalled(t *testing.T) {
	n := newTeam(t, "hooked")
	hooks := map[string]string{"hook.yaml": hookTemplate}
	n.chart("web", "wait: true, values: {delay: 4}", hooks)
	n.chart("hasty", "values: {delay: 30}, install: {timeout: 1m}", hooks)
	n.push("Ship")
	n.appReady("web")
	if got := kubectl(t, "get", "job", "web-greet", "-n", n.namespace(), "-o", "jsonpath={.status.succeeded}"); got != "1" {
		t.Errorf("the hook succeeded %q times, want %q", got, "1")
	}
	n.waitForReady("hasty", v1alpha1.InstallFailedReason, "Job/hasty-greet", "exit code 1", "connection refused")
	must(t, platform.Ready(t.Context(), &v1alpha1.App{}, n.namespace(), "web"))
}

// TestFailedTestsOfAChartRollTheUpgradeBack, and are reported with the last log lines of their pod.
func TestFailedTestsOfAChartRollTheUpgradeBack(t *testing.T) {
	n := newTeam(t, "tested")
	tests := map[string]string{"test.yaml": testTemplate}
	const with = "test: {enable: true}, remediation: {retries: 0}, "
	n.chart("web", with+"values: {message: one}", tests)
	n.push("Ship")
	n.appReady("web")
	app := &v1alpha1.App{}
	must(t, platform.Client.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "web"}, app))
	if got := app.Status.History[0].Test; got != "Succeeded" {
		t.Errorf("the tests of revision 1 ended with %q, want %q", got, "Succeeded")
	}

	n.chart("web", with+"values: {message: two, page: fail}", tests)
	n.push("Ship what fails its test")
	n.waitForReady("web", v1alpha1.HeldReason, "Pod/web-test", "exit code 1", "500 Internal Server Error", "rolled back to revision 1")
	n.answers("web", "one")

	n.chart("web", with+"values: {message: three}", tests)
	n.push("Mend it")
	n.appReady("web")
	n.answers("web", "three")
	t.Logf("\n%s", n.helm("status", "web"))
}
