package health

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/condition"
)

// maxPods bounds how many pods of a workload are read to find the cause.
const maxPods = 100

// workloadCause says why a workload's pods are not created, or what is wrong with one of them.
func (e Explainer) workloadCause(ctx context.Context, o *unstructured.Unstructured) (cause, error) {
	// A Deployment and a ReplicaSet report this in a condition; other kinds report it only in events.
	if failure, ok := condition.True(o, string(appsv1.DeploymentReplicaFailure)); ok {
		return e.refused(failure.Message), nil
	}
	pods, err := e.podsOf(ctx, o)
	if err != nil {
		return cause{}, err
	}
	if s := worst(o, pods); s.trouble != noTrouble {
		found, err := e.podCause(ctx, s)
		// A Job makes new pods until its own limit; only its status says that it failed.
		found.stuck = found.stuck && s.kind != "Job"
		return found, err
	}
	if !lacksPods(o, pods) {
		return cause{}, nil
	}
	events, err := e.events(ctx, o)
	if why := events.first("FailedCreate"); why != "" {
		return e.refused(why), nil
	}
	return cause{}, err
}

// attempt matches the beginning of a refusal by the API server or a controller. It contains the pod's name, which differs each time.
var attempt = regexp.MustCompile(`^(?:Error creating: |create Pod \S+ in \S+ \S+ failed error: )?(?:pods "[^"]*" is forbidden: )?`)

// refused says why the API server refuses pods: quota, Pod Security, an admission policy or webhook, a missing account.
func (e Explainer) refused(why string) cause {
	return cause{why: "its pods are refused: " + e.stableText(attempt.ReplaceAllString(why, "")), stuck: true}
}

func (e Explainer) podsOf(ctx context.Context, o *unstructured.Unstructured) ([]corev1.Pod, error) {
	raw, found, err := unstructured.NestedMap(o.Object, "spec", "selector")
	if !found && err == nil {
		return nil, nil
	}
	var selector labels.Selector
	if err == nil {
		selector, err = selectorOf(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("reading its selector: %w", err)
	}
	pods := &corev1.PodList{}
	err = e.list(ctx, pods, client.InNamespace(o.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
	return pods.Items, err
}

func selectorOf(raw map[string]any) (labels.Selector, error) {
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, parsed); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(parsed)
}

// lacksPods reports whether a workload that creates its pods itself, and has no condition about failures, has fewer pods than it wants.
func lacksPods(o *unstructured.Unstructured, pods []corev1.Pod) bool {
	field := []string{"spec", "replicas"}
	switch o.GetKind() {
	case "Deployment", "ReplicaSet":
		return false
	case "DaemonSet":
		field = []string{"status", "desiredNumberScheduled"}
	case "Job":
		field = []string{"spec", "parallelism"}
	}
	wanted, found, _ := unstructured.NestedInt64(o.Object, field...)
	if !found {
		wanted = 1
	}
	return int64(len(pods)) < wanted
}

// worst returns the pod in the worst trouble among those created for the last change; an older pod says nothing about that change. Of
// several in the same trouble, it returns the oldest, so that repeated checks agree. For a Job it returns the newest, which is the last
// attempt.
func worst(o *unstructured.Unstructured, pods []corev1.Pod) suspect {
	present := generationOf(o, pods)
	found := suspect{trouble: noTrouble}
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil || !present(pod) {
			continue
		}
		s := suspect{pod: pod, kind: o.GetKind()}.examined()
		if s.trouble < found.trouble || s.trouble == found.trouble && s.trouble != noTrouble && s.before(found) {
			found = s
		}
	}
	return found
}

// generationOf returns a function that reports whether a pod was made for the workload's last change.
func generationOf(o *unstructured.Unstructured, pods []corev1.Pod) func(*corev1.Pod) bool {
	switch o.GetKind() {
	case "Deployment":
		if name := newestReplicaSet(o); name != "" {
			return func(p *corev1.Pod) bool { return madeBy(p) == name }
		}
		return sameAsNewest(pods, madeBy)
	case "DaemonSet":
		return sameAsNewest(pods, revisionOf)
	}
	// An ordered StatefulSet does not replace a pod that never became ready, so it may be waiting for an old pod, too.
	return func(*corev1.Pod) bool { return true }
}

func sameAsNewest(pods []corev1.Pod, of func(*corev1.Pod) string) func(*corev1.Pod) bool {
	newest := 0
	for i := range pods {
		if pods[newest].CreationTimestamp.Before(&pods[i].CreationTimestamp) {
			newest = i
		}
	}
	return func(p *corev1.Pod) bool { return of(p) == of(&pods[newest]) }
}

// quoted finds the ReplicaSet in the condition Progressing. The Deployment names it nowhere else, and listing ReplicaSets would cost
// another request.
var quoted = regexp.MustCompile(`[Rr]eplica ?[Ss]et "([^"]+)"`)

func newestReplicaSet(o *unstructured.Unstructured) string {
	c, _ := condition.Of(o, string(appsv1.DeploymentProgressing))
	if found := quoted.FindStringSubmatch(c.Message); found != nil && strings.HasPrefix(found[1], o.GetName()) {
		return found[1]
	}
	return ""
}

func madeBy(p *corev1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil {
		return owner.Name
	}
	return ""
}

func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.ControllerRevisionHashLabelKey] }
