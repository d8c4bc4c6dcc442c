package health

import (
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/condition"
)

// state is the health of an object by its own status, in rising order of trouble.
type state int

const (
	healthy state = iota
	waiting
	// failed: waiting alone is not expected to help.
	failed
	// gaveUp: Kubernetes gave up.
	gaveUp
)

// judgment is the health of one object by its own status.
type judgment struct {
	state state
	why   string
	// settled reports that its controller has seen its last change, so that its pods are those of that change.
	settled bool
	// runs: it is a Job that has not ended, and is not suspended.
	runs bool
}

// WhyUnhealthy says on one line why an object is not healthy by its own status; "" if it is healthy. The text may quote controllers. final
// reports that Kubernetes gave up, so that waiting does not help.
func WhyUnhealthy(o *unstructured.Unstructured) (why string, final bool, err error) {
	found, err := judge(o)
	if err != nil || found.state == healthy {
		return "", false, err
	}
	return oneLine(found.why), found.state == gaveUp, nil
}

// judge judges with kstatus, and with its own rules where kstatus is satisfied too early: a Job that runs, a Pod that failed, and a load
// balancer without an address.
func judge(o *unstructured.Unstructured) (judgment, error) {
	result, err := status.Compute(o)
	if err != nil {
		return judgment{}, err
	}
	if result.Status == status.TerminatingStatus {
		return judgment{state: waiting, why: "is being deleted"}, nil
	}
	reason := reasonOf(result)
	if _, observed, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); reason == "LatestGenerationNotObserved" || o.GroupVersionKind().Group == "apps" && !observed {
		return judgment{state: waiting, why: "its controller has not seen the last change yet"}, nil
	}
	j := judgment{settled: true, state: waiting, why: result.Message}
	switch o.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		return judgeJob(o), nil
	case "Pod":
		j.state, j.why = judgePod(o)
		return j, nil
	case "Service":
		j.state, j.why = judgeService(o)
		return j, nil
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "PersistentVolumeClaim":
		j.why = inWords(o, reason, result.Message)
	}
	switch result.Status {
	case status.CurrentStatus:
		j.state = healthy
	case status.FailedStatus:
		j.state = gaveUp
	}
	return j, nil
}

func reasonOf(result *status.Result) string {
	if len(result.Conditions) == 0 {
		return ""
	}
	return result.Conditions[0].Reason
}

// words describe what kstatus counts. They contain no numbers, because the message would change with each new pod.
var words = map[string]string{
	"LessReplicas":             "not all of its pods are made yet",
	"LessLabelled":             "not all of its pods are made yet",
	"LessCurrent":              "not all of its pods are made yet",
	"NoDesiredNumber":          "its controller has not counted the nodes yet",
	"LessUpdated":              "not all of its pods are of the last change yet",
	"PartitionRollout":         "not all of its pods are of the last change yet",
	"RevisionMismatch":         "not all of its pods are of the last change yet",
	"LessAvailable":            "not all of its pods are available yet",
	"LessReady":                "not all of its pods are ready yet",
	"ExtraPods":                "pods of before the last change are still there",
	"ReplicaSetNotAvailable":   "not all of its pods are available yet",
	"DeploymentNotAvailable":   "too few of its pods are available",
	"ReplicaFailure":           "its pods are refused",
	"ProgressDeadlineExceeded": "made no progress within its deadline (progressDeadlineSeconds)",
	"NotBound":                 "is not bound to a volume yet",
}

func inWords(o *unstructured.Unstructured, reason, message string) string {
	if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
		return "is paused (spec.paused)"
	}
	if text, ok := words[reason]; ok {
		return text
	}
	return message
}

// judgeJob waits for the end of a Job, as Helm does with --wait-for-jobs.
func judgeJob(o *unstructured.Unstructured) judgment {
	j := judgment{settled: true}
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	switch ended, failed, why := condition.JobEnded(o); {
	case failed:
		j.state, j.why = gaveUp, strings.TrimSuffix("failed: "+why, ": ")
	case ended:
		j.state = healthy
	case suspended:
		j.state, j.why = waiting, "is suspended (spec.suspend)"
	default:
		j.state, j.why, j.runs = waiting, "has not completed yet", true
	}
	return j
}

func judgePod(o *unstructured.Unstructured) (state, string) {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	_, ready := condition.True(o, string(corev1.PodReady))
	switch {
	case phase == string(corev1.PodSucceeded), phase == string(corev1.PodRunning) && ready:
		return healthy, ""
	case phase == string(corev1.PodFailed):
		return gaveUp, "failed"
	}
	return waiting, "is not ready yet"
}

// judgeService waits for the address of a load balancer, as Helm's --wait does.
func judgeService(o *unstructured.Unstructured) (state, string) {
	addresses, _, _ := unstructured.NestedSlice(o.Object, "status", "loadBalancer", "ingress")
	external, _, _ := unstructured.NestedSlice(o.Object, "spec", "externalIPs")
	if !isLoadBalancer(o) || len(addresses)+len(external) > 0 {
		return healthy, ""
	}
	return waiting, "no load balancer has been given to it yet"
}

func isLoadBalancer(service *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(service.Object, "spec", "type")
	return kind == string(corev1.ServiceTypeLoadBalancer)
}
