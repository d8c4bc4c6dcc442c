package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Explainer says why objects are not healthy, with the rights of one project's deployer. What the deployer may not list
// goes unsaid.
type Explainer struct {
	// Client reads as the deployer, past any cache.
	Client client.Client
	// Logs reads logs as the deployer; see LogsOf. Nil: none are read.
	Logs Logs
	// Mask hides what no message may show. Logs, events and statuses hold what tenants' programs wrote, secrets included;
	// each text goes through it whole, before it is put on one line and cut. Nil: nothing is hidden.
	Mask func(string) string
	// Late: the watch had time to show every Floor, so that an object that it does not show so is read.
	Late bool
	// AfterDeletion follows "was deleted" in the verdict on an object that is not there any more: what happens next.
	AfterDeletion string
	// Checks judge some kinds in the place of kstatus when objects are looked at. Nil: none.
	Checks *Checks
}

// Explain says on one line what is wrong with an object, as "Kind/name: why", and "" when nothing is or it is gone. An
// object that is known by its manifest only is read first. It is for the object that made something else fail, such as a
// hook: whatever keeps it from being read goes unsaid.
func (e Explainer) Explain(ctx context.Context, o *unstructured.Unstructured) string {
	ref := Ref{Kind: o.GroupVersionKind(), Key: client.ObjectKeyFromObject(o)}
	if _, hasStatus := o.Object["status"]; !hasStatus || o.GetUID() == "" {
		live, err := e.read(ctx, ref)
		if live == nil || err != nil {
			return ""
		}
		o = live
	}
	f, err := e.judged(ref, o)
	if err != nil || f.state == healthy {
		return ""
	}
	if f.object != nil && canExplain(f.object) {
		// Without the pods there is still the status of the object.
		_ = e.addCause(ctx, f)
	}
	return f.line()
}

// cause is why an object is not healthy.
type cause struct {
	why string
	// stuck: waiting alone is not expected to help.
	stuck bool
}

// canExplain reports whether pods or events may explain the state of an object.
func canExplain(o *unstructured.Unstructured) bool {
	if wanted, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); found && wanted == 0 {
		return false
	}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "Pod", "PersistentVolumeClaim", "Service":
		return true
	}
	return false
}

// addCause adds the cause to what is known from the status of an object, or replaces it where the status has only that it waits.
func (e Explainer) addCause(ctx context.Context, f *finding) error {
	found, err := e.cause(ctx, f.object)
	if err != nil || found.why == "" {
		return err
	}
	if f.state == gaveUp && f.ref.Kind.Kind != "Pod" {
		found.why = f.why + "; " + found.why
	}
	f.why = found.why
	if found.stuck && f.state == waiting {
		f.state = failed
	}
	return nil
}

func (e Explainer) cause(ctx context.Context, o *unstructured.Unstructured) (cause, error) {
	switch o.GetKind() {
	case "Pod":
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
			return cause{}, fmt.Errorf("reading its status: %w", err)
		}
		return e.podCause(ctx, suspect{pod: pod, kind: "Pod"}.examined())
	case "PersistentVolumeClaim":
		return e.claimCause(ctx, o)
	case "Service":
		events, err := e.events(ctx, o)
		if warning := events.warning(); warning != "" {
			return cause{why: "no load balancer has been given to it yet: " + e.stableText(warning)}, nil
		}
		return cause{}, err
	}
	return e.workloadCause(ctx, o)
}

// claimCause says why a claim has no volume. That a claim waits for its first pod, or that there is no storage class, is
// in events of type Normal.
func (e Explainer) claimCause(ctx context.Context, o *unstructured.Unstructured) (cause, error) {
	events, err := e.events(ctx, o)
	if err != nil {
		return cause{}, err
	}
	if reported := events.first("ProvisioningFailed", "VolumeMismatch", "FailedBinding", "ExternalProvisioning", "WaitForPodScheduled"); reported != "" {
		return cause{why: "is not bound to a volume: " + e.stableText(reported)}, nil
	}
	if events.first("WaitForFirstConsumer") != "" {
		return cause{why: "is not bound to a volume: its storage class makes one for the first pod that uses it, and there is none"}, nil
	}
	return cause{}, nil
}
