package health

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Explainer says why objects are not healthy. It has only the rights of one project's deployer, and leaves out what the deployer may not
// list.
type Explainer struct {
	// Client reads as the deployer, without a cache.
	Client client.Client
	// Logs reads logs as the deployer; see LogsOf. With nil, no logs are read.
	Logs Logs
	// Mask hides the values that no message may show. Logs, events and statuses contain text that tenants' programs wrote, and secrets in
	// it. Each text is masked as a whole, before it is put on one line and cut. With nil, nothing is hidden.
	Mask func(string) string
	// Late: the watch had enough time to show every Floor. So an object that the watch still shows in an older version is read.
	Late bool
	// AfterDeletion follows "was deleted" in the verdict on a deleted object. It says what happens next.
	AfterDeletion string
	// Checks replace kstatus for some kinds when objects are judged. Nil: for none.
	Checks *Checks
}

// Trouble is what is wrong with an object. The zero value says that nothing is, or that the object does not exist.
type Trouble struct {
	// Object is the object as "Kind/name", and Why says on one line what is wrong with it.
	Object, Why string
	// Runs: the object is a Job that has not ended, and nothing else is known to be wrong.
	Runs bool
}

// String returns "Kind/name: why", and "" for the zero value.
func (t Trouble) String() string {
	if t == (Trouble{}) {
		return ""
	}
	return t.Object + ": " + t.Why
}

// Explain says what is wrong with an object. If only the manifest of an object is known, the object is read first. Explain is for an object that
// made something else fail, such as a hook, so errors of reading it are left out.
func (e Explainer) Explain(ctx context.Context, o *unstructured.Unstructured) Trouble {
	ref := Ref{Kind: o.GroupVersionKind(), Key: client.ObjectKeyFromObject(o)}
	if _, hasStatus := o.Object["status"]; !hasStatus || o.GetUID() == "" {
		live, err := e.read(ctx, ref)
		if live == nil || err != nil {
			return Trouble{}
		}
		o = live
	}
	f, err := e.judged(ref, o)
	if err != nil {
		return Trouble{}
	}
	// Without pods and events, the status of the object still says something.
	_ = e.judgeClaims(ctx, []*finding{f})
	if f.state == healthy {
		return Trouble{}
	}
	if f.object != nil && canExplain(f.object) {
		_ = e.addCause(ctx, f)
	}
	return Trouble{Object: f.ref.String(), Why: f.why, Runs: f.runs}
}

// cause is why an object is not healthy.
type cause struct {
	why string
	// stuck: waiting is not expected to help.
	stuck bool
}

// canExplain reports whether pods or events may explain the state of an object.
func canExplain(o *unstructured.Unstructured) bool {
	if wanted, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); found && wanted == 0 {
		return false
	}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "Pod", "Service":
		return true
	}
	return false
}

// addCause adds the cause to the message from an object's status. If the status says only that the object waits, the cause replaces that.
func (e Explainer) addCause(ctx context.Context, f *finding) error {
	found, err := e.cause(ctx, f.object)
	if err != nil || found.why == "" {
		return err
	}
	if f.state == gaveUp && f.ref.Kind.Kind != "Pod" {
		found.why = f.why + "; " + found.why
	}
	f.why, f.runs = found.why, false
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
	case "Service":
		events, err := e.events(ctx, o)
		if warning := events.warning(); warning != "" {
			return cause{why: "no load balancer has been given to it yet: " + e.stableText(warning)}, nil
		}
		return cause{}, err
	}
	return e.workloadCause(ctx, o)
}
