package apply

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/own"
)

// keepPods returns the object to apply: with the labels of the live pod template if the owner's labels alone would restart the pods. That is
// so for a workload that was taken over, which has none, and for one that moved here from another app of the project, which has that app's,
// until its spec changes for another reason. Such a workload costs two more requests for each write.
func (t *target) keepPods(ctx context.Context, from precondition) (*unstructured.Unstructured, error) {
	whole := t.whole()
	kept := t.withLivePods(whole)
	if kept == whole {
		return whole, nil
	}
	live, err := metadata.Read(ctx, t.set.Client, t.kind(), t.key())
	if err != nil {
		return nil, fmt.Errorf("reading the generation: %w", err)
	}
	if live == nil {
		return whole, nil
	}
	// If the API server refuses the dry run, it refuses the write too, and that error is reported.
	then, refused := t.send(ctx, kept, from, client.DryRunAll)
	if refused == nil && then.GetGeneration() == live.GetGeneration() {
		return kept, nil
	}
	return whole, nil
}

// withLivePods returns the object with the owner's labels of the live pod template, as far as the live object's metadata have them.
func (t *target) withLivePods(whole *unstructured.Unstructured) *unstructured.Unstructured {
	path := own.PodLabelPath(whole)
	if t.live == nil || path == nil {
		return whole
	}
	if !fieldmanager.Owns(t.live, path) {
		return own.WithoutPodLabels(whole)
	}
	labels := t.live.GetLabels()
	app := cmp.Or(labels[v1alpha1.PodsOfLabel], labels[v1alpha1.AppLabel])
	if app == "" || app == whole.GetLabels()[v1alpha1.AppLabel] || !own.SameProject(labels, whole.GetLabels()) {
		return whole
	}
	return own.WithPodsOf(whole, app)
}
