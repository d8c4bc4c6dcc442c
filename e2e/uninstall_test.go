//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// TestRemovingDefinitionsAndOperatorRemovesNothingElse deletes kubeop's CRDs on purpose, uninstalls kubeop, and reinstalls both.
// No pod may restart. It is the last story, because the Git server cannot call the operator's new Service.
func TestRemovingDefinitionsAndOperatorRemovesNothingElse(t *testing.T) {
	n := newTeam(t, "keeper")
	n.deliver("web", image("v1"), "still here")
	n.chart("api", "values: {message: here too}", nil)
	n.push("Ship")
	n.appReady("web")
	n.appReady("api")
	n.answers("web", "still here")
	before := n.pods()
	wrong := n.wrongAnswers("web", "still here")

	definitions := []string{"apps", "projects", "repositories", "tenants"}
	for i, name := range definitions {
		definitions[i] = name + "." + v1alpha1.GroupVersion.Group
	}
	_, err := platform.Kubectl(t.Context(), append([]string{"delete", "crd"}, definitions...)...)
	if err == nil || strings.Count(err.Error(), "DeletionGuard: ") != len(definitions) {
		t.Fatalf("deleting the definitions by a slip ended with %v", err)
	}
	for _, name := range definitions {
		kubectl(t, "annotate", "crd", name, v1alpha1.AllowDeletionAnnotation+"="+name)
	}
	kubectl(t, append([]string{"delete", "crd", "--timeout=60s"}, definitions...)...)
	n.unnoticed("without definitions", before)

	kubectl(t, "apply", "--server-side", "-f", filepath.Join("..", "charts", "kubeop", "crds"))
	n.takenBack()
	n.unnoticed("with definitions again", before)

	_, err = platform.Helm(t.Context(), "uninstall", "kubeop", "-n", stage.Namespace, "--wait", "--timeout", "2m")
	must(t, err)
	n.unnoticed("without kubeop", before)
	if may := kubectl(t, "auth", "can-i", "list", "pods", "-n", n.namespace(), "--as", n.name+"-viewer"); may != "yes" {
		t.Errorf("without kubeop a viewer may list pods: %s, want %q", may, "yes")
	}
	if _, err := platform.Kubectl(t.Context(), "delete", "namespace", n.namespace()); err == nil || !strings.Contains(err.Error(), "DeletionGuard: ") {
		t.Errorf("without kubeop, deleting a namespace by a slip ended with %v", err)
	}
	must(t, platform.Install(t.Context()))
	n.takenBack()
	n.unnoticed("with kubeop again", before)
	if bad := wrong(); len(bad) != 0 {
		t.Errorf("visitors noticed: %q", bad)
	}
	if history := n.helm("history", "api", "-o", "json"); strings.Count(history, `"revision"`) != 1 {
		t.Errorf("the release was delivered again: %s", history)
	}

	n.deliver("web", image("v1"), "and moving on")
	n.push("Move on")
	kubectl(t, "annotate", "repository", n.name, "--overwrite", "reconcile.fluxcd.io/requestedAt="+time.Now().Format(time.RFC3339Nano))
	n.answers("web", "and moving on")
}

// pods returns the team's pods, with the fields that change when one is recreated or restarted.
func (n *team) pods() map[string]string {
	n.t.Helper()
	list := &corev1.PodList{}
	must(n.t, json.Unmarshal([]byte(kubectl(n.t, "get", "pods", "-n", n.namespace(), "-o", "json")), list))
	found := map[string]string{}
	for _, p := range list.Items {
		state := fmt.Sprintf("%s, deleted %t", p.UID, p.DeletionTimestamp != nil)
		for _, c := range p.Status.ContainerStatuses {
			state += fmt.Sprintf(", %s restarted %d times", c.ContainerID, c.RestartCount)
		}
		found[p.Name] = state
	}
	if len(found) < 2 {
		n.t.Fatalf("there are no two pods: %v", found)
	}
	return found
}

func (n *team) unnoticed(when string, before map[string]string) {
	n.t.Helper()
	time.Sleep(2 * time.Second) // Time in which the operator could delete something.
	if diff := cmp.Diff(before, n.pods()); diff != "" {
		n.t.Fatalf("%s: pods were made or started again (-before +now):\n%s\nthe operator's log ends:\n%s",
			when, diff, platform.OperatorLog(context.WithoutCancel(n.t.Context())))
	}
	n.answers("web", "still here")
}

// takenBack waits until the team's tenant and apps are declared and ready again.
func (n *team) takenBack() {
	n.t.Helper()
	n.ready(&v1alpha1.Tenant{}, "", n.name)
	n.appReady("web")
	n.appReady("api")
}
