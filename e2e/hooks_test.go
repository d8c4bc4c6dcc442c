//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// hooked writes an Image app with one pre hook that has the given fields.
func (n *team) hooked(app, hook string) {
	n.t.Helper()
	n.write("projects/shop/apps/"+app+"/app.yaml", fmt.Sprintf(imageFile, app, image("v1"), app)+"  hooks:\n    pre:\n    - {name: migrate, "+hook+"}\n")
}

// hookJobs lists the Jobs of an app's hooks.
func (n *team) hookJobs(ctx context.Context, app string) ([]batchv1.Job, error) {
	list := &batchv1.JobList{}
	err := platform.Client.List(ctx, list, client.InNamespace(n.namespace()), client.MatchingLabels{v1alpha1.AppLabel: app}, client.HasLabels{v1alpha1.HookLabel})
	return list.Items, err
}

// TestFailedHooksAreReported runs two failing hooks. The message of the first is reported without its Secret. The second times out and is ignored.
func TestFailedHooksAreReported(t *testing.T) {
	n := newTeam(t, "migrating")
	const secret = "pa55-w0rd"
	kubectl(t, "create", "secret", "generic", "db", "-n", n.namespace(), "--from-literal=token="+secret)
	n.hooked("web", `args: [-get, "http://127.0.0.1:1/$(TOKEN)"], env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: db, key: token}}}]`)
	n.hooked("slow", "args: [-work], timeout: 2s, onFailure: Continue")
	n.push("Migrate what cannot be reached")
	n.waitForReady("web", v1alpha1.PreHookFailedReason, "pre hook migrate failed", "exit code 1", `calling: Get "http://127.0.0.1:1/***"`, "connection refused")
	n.appReady("slow")
	if got, want := kubectl(t, "get", "app", "slow", "-n", n.namespace(), "-o", "jsonpath={.status.hooks[0].message}"), "did not end within 2s and was stopped"; !strings.Contains(got, want) {
		t.Errorf("the message of the slow hook is %q, want %q in it", got, want)
	}
	if got := kubectl(t, "get", "deployments", "-n", n.namespace(), "-o", "name"); got != "deployment.apps/slow" {
		t.Errorf("there are %s, want %q", got, "deployment.apps/slow")
	}
	if out := kubectl(t, "get", "apps,events", "-n", n.namespace(), "-o", "yaml"); strings.Contains(out, secret) {
		t.Errorf("the Secret is in the output:\n%s", out)
	}

	n.hooked("web", "args: [-say]")
	n.push("Mend the hook")
	n.appReady("web")
	n.answers("web", "web")
}

// TestAHookRunsOnceWhateverIsKilled kills the operator while a hook runs.
func TestAHookRunsOnceWhateverIsKilled(t *testing.T) {
	n := newTeam(t, "once")
	n.hooked("web", "args: [-work, -for, 4s]")
	n.push("Migrate")
	var begun batchv1.Job
	until(t, "the hook runs", func(ctx context.Context) error {
		jobs, err := n.hookJobs(ctx, "web")
		if err == nil && (len(jobs) != 1 || jobs[0].Status.Ready == nil || *jobs[0].Status.Ready != 1) {
			return fmt.Errorf("of %d Jobs none runs", len(jobs))
		}
		if err == nil {
			begun = jobs[0]
		}
		return err
	})
	must(t, platform.KillOperator(t.Context()))
	n.appReady("web")
	n.answers("web", "web")
	jobs, err := n.hookJobs(t.Context(), "web")
	must(t, err)
	if len(jobs) != 1 || jobs[0].UID != begun.UID || jobs[0].Status.Succeeded != 1 || jobs[0].Status.Failed != 0 {
		t.Errorf("the Job %s became %+v", begun.UID, jobs)
	}
	made := kubectl(t, "get", "events", "-n", n.namespace(), "--field-selector", "reason=SuccessfulCreate,involvedObject.kind=Job", "-o", "name")
	if got := len(strings.Fields(made)); got != 1 {
		t.Errorf("%d pods were made for hooks, want 1", got)
	}
	if got := kubectl(t, "logs", "-n", n.namespace(), "job/"+begun.Name); got != "worked for 4s" {
		t.Errorf("the hook printed %q, want %q", got, "worked for 4s")
	}
}
