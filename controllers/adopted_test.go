package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// runningDeployment is a Deployment as a chart has it; the metadata in the cluster also names the release.
const runningDeployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: running%s}\n" +
	"spec: {replicas: 1, selector: {matchLabels: {x: z}}, template: {metadata: {labels: {x: z}}, spec: {" + podSpec + "}}}\n"

// TestAnAdoptedReleaseKeepsItsPods has an app take over a Deployment that somebody's helm made, and then change its image.
func TestAnAdoptedReleaseKeepsItsPods(t *testing.T) {
	n := newTeam(t, "adopter")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	const namespace, byHelm = "kubeop-adopter-shop", ", labels: {app.kubernetes.io/managed-by: Helm}, " +
		"annotations: {meta.helm.sh/release-name: released, meta.helm.sh/release-namespace: kubeop-adopter-shop}"
	live := n.object(namespace, fmt.Sprintf(runningDeployment, byHelm))
	if err := n.admin.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}

	files := withRelease(shopFiles("shop", "web"))
	const template = "projects/shop/apps/released/chart/templates/running.yaml"
	files[template] = fmt.Sprintf(runningDeployment, "")
	n.push(files)
	n.eventually(func() error { return n.labelled(live, "released", "") })
	if got := live.GetGeneration(); got != 1 {
		t.Errorf("the generation is %d after the app took the Deployment over, want 1: its pods restart", got)
	}

	files[template] = strings.Replace(files[template], "image: a", "image: b", 1)
	n.push(files)
	n.eventually(func() error { return n.labelled(live, "released", "released") })
}

// TestADeploymentThatIsTakenOverKeepsItsPods has a Raw app take over a Deployment that a person made, and then change its image.
func TestADeploymentThatIsTakenOverKeepsItsPods(t *testing.T) {
	n := newTeam(t, "taker")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	live := n.object("kubeop-taker-shop", fmt.Sprintf(runningDeployment, ""))
	if err := n.admin.Create(t.Context(), live, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}

	files := shopFiles("shop", "web")
	const file = "projects/shop/apps/bad/app.yaml"
	text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(runningDeployment, "")), "\n", "\n      ")
	files[file] = strings.Replace(rawApp(text)["app.yaml"], "  type: Raw\n", "  type: Raw\n  takeOwnership: true\n  drift: {mode: Warn}\n", 1)
	n.push(files)
	n.eventually(func() error { return n.labelled(live, "bad", "") })
	if got := live.GetGeneration(); got != 1 {
		t.Errorf("the generation is %d after the app took the Deployment over, want 1: its pods restart", got)
	}
	version := live.GetResourceVersion()
	n.reconcile(n.app("shop", "bad"))
	if err := n.labelled(live, "bad", ""); err != nil || live.GetResourceVersion() != version {
		t.Errorf("another reconcile wrote the Deployment: %v", err)
	}

	paused := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"hostname":"edited"}}}}`))
	if err := n.admin.Patch(t.Context(), live.DeepCopy(), paused, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		app := n.app("shop", "bad")
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		drifted := conditions.GetMessage(app, v1alpha1.DriftedCondition)
		if !strings.Contains(drifted, "hostname") || strings.Contains(drifted, "paas.kubeop.io") {
			return fmt.Errorf("Drifted says %q", drifted)
		}
		return nil
	})

	files[file] = strings.Replace(files[file], "image: a", "image: b", 1)
	n.push(files)
	n.eventually(func() error { return n.labelled(live, "bad", "bad") })
}

// labelled reads a Deployment, and returns an error unless it and its pods have these values of the label of the app.
func (n *team) labelled(o client.Object, app, pods string) error {
	live := &appsv1.Deployment{}
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		return err
	}
	o.SetGeneration(live.Generation)
	o.SetResourceVersion(live.ResourceVersion)
	got := [2]string{live.Labels[v1alpha1.AppLabel], live.Spec.Template.Labels[v1alpha1.AppLabel]}
	if got != [2]string{app, pods} {
		return fmt.Errorf("the Deployment and its pods are labelled %q", got)
	}
	return nil
}
