package health

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxPods bounds how many pods of a workload are read to find a culprit.
const maxPods = 50

// explain says why a workload is not healthy: what stops its pods from being made, or the first pod that is in trouble
// and why. It reports true when time alone does not mend it. Other kinds get no explanation.
func explain(ctx context.Context, c client.Client, o *unstructured.Unstructured) (string, bool, error) {
	if why := refusedPods(o); why != "" {
		return why, true, nil
	}
	selector, ok, err := podSelector(o)
	if !ok || err != nil {
		return "", false, err
	}
	pods := &corev1.PodList{}
	options := []client.ListOption{client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods)}
	if err := c.List(ctx, pods, options...); err != nil {
		return "", false, fmt.Errorf("listing the pods of %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	waiting := ""
	for i := range pods.Items {
		why, fatal := trouble(&pods.Items[i])
		if fatal {
			// A Job makes new pods until its own backoff limit; only the Job's status says that it failed.
			return why, o.GetKind() != "Job", nil
		}
		if waiting == "" {
			waiting = why
		}
	}
	return waiting, false, nil
}

// refusedPods returns why the API server refuses a workload's pods: quota, Pod Security or an admission policy. A
// Deployment and a ReplicaSet say so in the condition ReplicaFailure.
func refusedPods(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
			message, _ := condition["message"].(string)
			return message
		}
	}
	return ""
}

// podSelector returns the selector of a workload's pods; false for kinds that have none.
func podSelector(o *unstructured.Unstructured) (labels.Selector, bool, error) {
	switch o.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job":
	default:
		return nil, false, nil
	}
	raw, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if !found || err != nil {
		return nil, false, err
	}
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, parsed); err != nil {
		return nil, false, fmt.Errorf("reading the selector of %s/%s: %w", o.GetKind(), o.GetName(), err)
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	return selector, err == nil, err
}

// trouble says what is wrong with a pod, if anything, and whether time alone does not mend it.
func trouble(pod *corev1.Pod) (string, bool) {
	if pod.DeletionTimestamp != nil {
		return "", false
	}
	statuses := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, c := range statuses {
		if why := containerTrouble(c); why != "" {
			return fmt.Sprintf("pod %s, container %s: %s", pod.Name, c.Name, why), true
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s is not scheduled: %s", pod.Name, condition.Message), false
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil && !c.Ready {
			return fmt.Sprintf("pod %s, container %s runs but its readiness probe does not succeed yet", pod.Name, c.Name), false
		}
	}
	return "", false
}

// harmless are reasons of a waiting container that only say it is on its way.
var harmless = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// containerTrouble says why a container does not come up. It says the same at each turn of a loop that Kubernetes goes
// through, trying, failing and waiting, and counts nothing: a message that changes is an event to whoever watches.
func containerTrouble(c corev1.ContainerStatus) string {
	ended := c.State.Terminated
	waiting := c.State.Waiting
	if waiting != nil && waiting.Reason == "CrashLoopBackOff" {
		ended = c.LastTerminationState.Terminated
	}
	switch {
	case ended != nil && ended.ExitCode != 0:
		return "crashes with " + exit(ended)
	case waiting == nil || harmless[waiting.Reason]:
		return ""
	case waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff":
		return pullTrouble(c.Image, waiting.Message)
	}
	return strings.TrimSpace(waiting.Reason + ": " + waiting.Message)
}

// pullTrouble takes the kubelet's reason from what it says while it tries and while it waits.
func pullTrouble(image, message string) string {
	if _, cause, ok := strings.Cut(message, "ErrImagePull: "); ok {
		message = cause
	}
	if strings.HasPrefix(message, "Back-off") {
		message = ""
	}
	return strings.TrimSuffix(fmt.Sprintf("the image %s cannot be pulled: %s", image, strings.TrimSpace(message)), ": ")
}

func exit(ended *corev1.ContainerStateTerminated) string {
	why := fmt.Sprintf("exit code %d (%s)", ended.ExitCode, ended.Reason)
	if message := strings.TrimSpace(ended.Message); message != "" {
		return why + ": " + message
	}
	return why + "; kubectl logs --previous shows its last words"
}
