package health

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// trouble is what is wrong with a pod by its own status; the worst is first.
type trouble int

const (
	// crashing: a container ends again and again, or has ended and is not restarted.
	crashing trouble = iota
	// blocked: a container cannot be created because of its image or its configuration.
	blocked
	// lost: the pod as a whole failed, for example by eviction or because its time was over.
	lost
	unscheduled
	// unready: a container runs, but its probe does not succeed.
	unready
	// starting: the pod is on a node, but no container runs yet: volumes and network come first.
	starting
	// initializing: an init container runs.
	initializing
	noTrouble
)

// suspect is a pod that may be the cause of an unhealthy object.
type suspect struct {
	pod *corev1.Pod
	// kind of the object that the pod belongs to.
	kind      string
	trouble   trouble
	container *corev1.ContainerStatus
}

// before reports which of two pods in the same trouble is named.
func (s suspect) before(other suspect) bool {
	mine, others := s.pod.CreationTimestamp, other.pod.CreationTimestamp
	if mine.Equal(&others) {
		return s.pod.Name < other.pod.Name
	}
	return mine.Before(&others) != (s.kind == "Job")
}

// examined sets what is wrong with the pod, and with which of its containers.
func (s suspect) examined() suspect {
	status := &s.pod.Status
	replaced := s.kind != "Job" && s.kind != "Pod"
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed && replaced {
		// The controller has replaced the pod.
		s.trouble = noTrouble
		return s
	}
	if s.container = s.crashed(); s.container != nil {
		s.trouble = crashing
		return s
	}
	if s.container = find(status.InitContainerStatuses, stopped); s.container == nil {
		s.container = find(status.ContainerStatuses, stopped)
	}
	if s.container != nil {
		s.trouble = blocked
		return s
	}
	s.trouble, s.container = s.waitsFor()
	return s
}

// crashed returns the container that ended wrongly. If a pod was stopped as a whole, the reason of the pod says more than the signals that
// killed its containers.
func (s suspect) crashed() *corev1.ContainerStatus {
	status := &s.pod.Status
	if status.Phase == corev1.PodFailed && status.Reason != "" {
		return nil
	}
	if c := find(status.InitContainerStatuses, endsBadly); c != nil {
		return c
	}
	return find(status.ContainerStatuses, s.endsWrongly)
}

// waitsFor returns the thing that a pod waits for if nothing went wrong in it.
func (s suspect) waitsFor() (trouble, *corev1.ContainerStatus) {
	status := &s.pod.Status
	initial := find(status.InitContainerStatuses, s.initializes)
	running := find(status.ContainerStatuses, func(c *corev1.ContainerStatus) bool { return c.State.Running != nil && !c.Ready })
	made := find(status.InitContainerStatuses, begun) != nil || find(status.ContainerStatuses, begun) != nil
	switch {
	case status.Phase == corev1.PodFailed:
		return lost, nil
	case slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	}):
		return unscheduled, nil
	case running != nil:
		return unready, running
	case initial != nil:
		return initializing, initial
	case status.Phase == corev1.PodPending && !made:
		return starting, nil
	}
	return noTrouble, nil
}

func find(statuses []corev1.ContainerStatus, is func(*corev1.ContainerStatus) bool) *corev1.ContainerStatus {
	for i := range statuses {
		if is(&statuses[i]) {
			return &statuses[i]
		}
	}
	return nil
}

func begun(c *corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
}

// initializes reports whether an init container keeps the other containers from starting. An init container with restartPolicy Always is a
// sidecar and does not.
func (s suspect) initializes(c *corev1.ContainerStatus) bool {
	sidecar := slices.ContainsFunc(s.pod.Spec.InitContainers, func(i corev1.Container) bool {
		return i.Name == c.Name && i.RestartPolicy != nil && *i.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
	return c.State.Running != nil && !sidecar
}

// podCause says what is wrong with a pod.
func (e Explainer) podCause(ctx context.Context, s suspect) (cause, error) {
	switch s.trouble {
	case crashing:
		why, err := e.crashCause(ctx, s)
		return cause{s.describe(why), true}, err
	case blocked:
		why, err := e.blockedCause(ctx, s)
		return cause{s.describe(why), true}, err
	case lost:
		return cause{s.describe(e.lostCause(s.pod)), true}, nil
	case unscheduled:
		return cause{why: s.describe("is not scheduled" + e.unscheduled(s.pod))}, nil
	case initializing:
		return cause{why: s.describe(fmt.Sprintf("waits for its init container %s to end", s.container.Name))}, nil
	case unready, starting:
		return e.eventCause(ctx, s)
	}
	return cause{}, nil
}

// lostCause says why a pod as a whole failed.
func (e Explainer) lostCause(pod *corev1.Pod) string {
	status := &pod.Status
	// The kubelet's name for it; there is no constant.
	if limit := pod.Spec.ActiveDeadlineSeconds; status.Reason == "DeadlineExceeded" && limit != nil {
		return fmt.Sprintf("did not end within %s and was stopped", time.Duration(*limit)*time.Second)
	}
	return "failed: " + e.text(strings.TrimPrefix(status.Reason+": "+status.Message, ": "))
}

func (e Explainer) unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Message != "" {
			// The rest of the message is about pods that might be preempted for this one.
			message, _, _ := strings.Cut(c.Message, " preemption: ")
			return ": " + e.stableText(message)
		}
	}
	return ""
}

// eventCause finds causes that only events report: which probe fails, or which volume is missing.
func (e Explainer) eventCause(ctx context.Context, s suspect) (cause, error) {
	events, err := e.events(ctx, s.pod)
	if err != nil {
		return cause{}, err
	}
	if s.trouble == unready {
		why := "runs and is not ready yet"
		if reported := events.first("Unhealthy"); reported != "" {
			why = "runs and is not ready: " + e.stableText(reported)
		}
		return cause{why: s.describe(why)}, nil
	}
	// After a while, the kubelet only sums up that some volumes are missing. Its earlier events name them, and the reason.
	detailed := slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return strings.HasPrefix(e.Message, "Unable to attach or mount") })
	for _, known := range []eventList{detailed, events} {
		if reported := known.first("FailedAttachVolume", "FailedMount"); reported != "" {
			return cause{why: s.describe("waits for a volume: " + e.stableText(reported))}, nil
		}
	}
	if reported := events.warning(); reported != "" {
		return cause{why: s.describe("does not start: " + e.stableText(reported))}, nil
	}
	return cause{}, nil
}

// describe puts the pod before its problem, by name if the name lasts as long as the trouble, and the container if there are several.
func (s suspect) describe(why string) string {
	subject := ""
	switch s.kind {
	case "Pod":
	case "StatefulSet":
		subject = "pod " + s.pod.Name
	case "DaemonSet":
		subject = "its pod"
		if node := s.pod.Spec.NodeName; node != "" {
			subject += " on node " + node
		}
	case "Job":
		subject = "its last pod"
	default:
		subject = "its pod"
	}
	several := len(s.pod.Status.InitContainerStatuses)+len(s.pod.Status.ContainerStatuses) > 1
	if s.container != nil && several && s.trouble != initializing {
		subject = strings.TrimSuffix("container "+s.container.Name+" of "+subject, " of ")
	}
	return strings.TrimSpace(subject + " " + why)
}
