package health

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxClaimEvents bounds how many events of the claims of one namespace are read.
const maxClaimEvents = 2000

var claims = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// stuckClaim are the reasons of events that say why a claim has no volume, the most precise first. Those of type Normal are among them: no
// storage class, a provisioner that has not answered yet, and a pod that has no node yet.
var stuckClaim = []string{"ProvisioningFailed", "VolumeMismatch", "FailedBinding", "ExternalProvisioning", "WaitForPodScheduled"}

// judgeClaims judges the claims without a volume by their events, which are listed once for each namespace. A claim whose storage class makes
// volumes for the first pod that uses them is healthy until there is one, or else an app that runs on a schedule, or has no replicas, would
// never be. From then on Kubernetes reports other events, and the pod's workload is not healthy either.
func (e Explainer) judgeClaims(ctx context.Context, found []*finding) error {
	known := map[string]eventList{}
	for _, f := range found {
		if f.state != waiting || f.object == nil || f.ref.Kind.GroupKind() != claims {
			continue
		}
		events, listed := known[f.ref.Key.Namespace]
		if !listed {
			var err error
			if events, err = e.claimEvents(ctx, f.ref.Key.Namespace); err != nil {
				return fmt.Errorf("asking why %s is not healthy: %w", f.ref, err)
			}
			known[f.ref.Key.Namespace] = events
		}
		events = events.of(f.object.GetUID())
		reported := events.first(stuckClaim...)
		switch {
		case reported != "":
			f.why = "is not bound to a volume: " + e.stableText(reported)
		case isPending(f.object) && events.first("WaitForFirstConsumer") != "":
			f.state, f.why = healthy, ""
		}
	}
	return nil
}

// claimEvents lists the events of all claims of a namespace.
func (e Explainer) claimEvents(ctx context.Context, namespace string) (eventList, error) {
	list := &corev1.EventList{}
	ofClaims := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("involvedObject.kind", claims.Kind)}
	err := e.list(ctx, list, client.InNamespace(namespace), ofClaims, client.Limit(maxClaimEvents))
	return list.Items, err
}

// of returns the events of one object.
func (l eventList) of(uid types.UID) eventList {
	if uid == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l), func(e corev1.Event) bool { return e.InvolvedObject.UID != uid })
}

func isPending(claim *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
	return phase == string(corev1.ClaimPending)
}
