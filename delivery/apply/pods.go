package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/delivery/metadata"
	"github.com/kubeop/kubeop/delivery/own"
)

// keepPods returns the object to apply: without the owner's labels in its pod template if they alone would restart the pods. That is so for
// a workload that was taken over, until its spec changes for another reason. Such a workload costs two more requests for each write.
func (t *target) keepPods(ctx context.Context, from precondition) (*unstructured.Unstructured, error) {
	whole := t.whole()
	bare := own.WithoutPodLabels(whole)
	if bare == whole || t.live == nil || fieldmanager.Owns(t.live, own.PodLabelPath(whole)) {
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
	then, refused := t.send(ctx, bare, from, client.DryRunAll)
	if refused == nil && then.GetGeneration() == live.GetGeneration() {
		return bare, nil
	}
	return whole, nil
}
