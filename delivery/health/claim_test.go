package health

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unused is an event of a claim whose storage class waits for the first pod.
func unused(of *corev1.PersistentVolumeClaim) *corev1.Event {
	return normal(event(of, 1, "WaitForFirstConsumer", "waiting for first consumer to be created before binding"))
}

// TestAClaimThatWaitsForItsFirstPodIsHealthy, however many there are: an app on a schedule, without replicas, or with nothing but claims has
// no pod that uses them. One list of events is enough for all.
func TestAClaimThatWaitsForItsFirstPodIsHealthy(t *testing.T) {
	w := &world{}
	var held []client.Object
	var refs []Ref
	for i := range 5 {
		data := claim()
		data.Name, data.UID = fmt.Sprint("web-", i), types.UID(fmt.Sprint("claim-", i))
		held, refs, w.objects = append(held, data), append(refs, refTo(data)), append(w.objects, unused(data))
	}
	v, err := Look(t.Context(), w.explainer(t), watch(t, held...), refs)
	if err != nil || !v.Healthy() || w.requests() != "EventList:1" {
		t.Errorf("got %v, %v, asked %q", v, err, w.requests())
	}
	if why := w.explainer(t).Explain(t.Context(), unstructuredOf(t, held[0])); why != (Trouble{}) {
		t.Errorf("explained as %q", why)
	}
}

// TestAClaimThatCannotBindIsReported: by itself once Kubernetes says why, and by the workload whose pods wait for it.
func TestAClaimThatCannotBindIsReported(t *testing.T) {
	lost, going := claim(), claim()
	lost.Status.Phase = corev1.ClaimLost
	going.DeletionTimestamp = new(at(1))
	unbound := pod(refusedByScheduler("0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."))
	failing := event(claim(), 2, "ProvisioningFailed", "the disk quota is exceeded")
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		beside []client.Object
		want   string
	}{
		"with a pod that has no node":         {claim(), []client.Object{unused(claim()), unbound}, "Deployment/web: its pod is not scheduled: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."},
		"with a provisioner that fails":       {claim(), []client.Object{unused(claim()), failing, unbound}, "Deployment/web: its pod is not scheduled: 0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.; PersistentVolumeClaim/web: is not bound to a volume: the disk quota is exceeded"},
		"whose volume is lost":                {lost, []client.Object{unused(claim())}, "Deployment/web: not all of its pods are available yet; PersistentVolumeClaim/web: is not bound to a volume yet"},
		"that is being deleted":               {going, []client.Object{unused(claim())}, "Deployment/web: not all of its pods are available yet; PersistentVolumeClaim/web: is being deleted"},
		"with the event of another claim":     {claim(), []client.Object{unused(func() *corev1.PersistentVolumeClaim { c := claim(); c.UID = "other"; return c }())}, "Deployment/web: not all of its pods are available yet; PersistentVolumeClaim/web: is not bound to a volume yet"},
		"about which nothing is reported yet": {claim(), nil, "Deployment/web: not all of its pods are available yet; PersistentVolumeClaim/web: is not bound to a volume yet"},
	} {
		w := &world{objects: tc.beside}
		v, err := Look(t.Context(), w.explainer(t), watch(t, deployment(), tc.claim), []Ref{refTo(deployment()), refTo(tc.claim)})
		if err != nil || v.String() != tc.want {
			t.Errorf("%s: got  %q, %v\nwant %q", name, v, err, tc.want)
		}
	}
}
