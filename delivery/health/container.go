package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// shortRun: the kubelet forgets earlier crashes after a run of this length. A container whose run was shorter is in a crash loop.
const shortRun = 10 * time.Minute

// harmless are the reasons of a waiting container that is merely starting.
var harmless = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true}

// ended returns the end of the run by which a container in trouble is judged, and whether that was the previous run. The result stays the
// same while a container goes round the loop of running, ending and waiting.
func ended(c *corev1.ContainerStatus) (end *corev1.ContainerStateTerminated, previous bool) {
	last := c.LastTerminationState.Terminated
	switch {
	case c.State.Terminated != nil:
		return c.State.Terminated, false
	case c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff":
		return last, true
	case c.State.Running != nil && !c.Ready && last != nil && last.FinishedAt.Sub(last.StartedAt.Time) < shortRun:
		return last, true
	}
	return nil, false
}

// endsBadly reports whether a container crashes. It is for init containers, which may end with exit code 0.
func endsBadly(c *corev1.ContainerStatus) bool {
	end, _ := ended(c)
	return end != nil && end.ExitCode != 0
}

// endsWrongly reports whether a container crashes, or ends although it should run for ever.
func (s suspect) endsWrongly(c *corev1.ContainerStatus) bool {
	end, _ := ended(c)
	return end != nil && (end.ExitCode != 0 || s.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways)
}

func stopped(c *corev1.ContainerStatus) bool {
	return c.State.Waiting != nil && !harmless[c.State.Waiting.Reason]
}

// crashCause says how a container ends: by the message of its probe, by that of the runtime, or by the last lines of its log.
func (e Explainer) crashCause(ctx context.Context, s suspect) (string, error) {
	end, previous := ended(s.container)
	if end.Reason == "OOMKilled" {
		return fmt.Sprintf("is killed for using more memory than its limit (exit code %d, OOMKilled)", end.ExitCode), nil
	}
	if stoppable[end.ExitCode] {
		events, err := e.events(ctx, s.pod)
		if err != nil {
			return "", err
		}
		if reported := events.killing(end.StartedAt.Time); reported != "" {
			return "is restarted: " + e.stableText(reported), nil
		}
	}
	words := e.lastWords(end.Message)
	if words == "" {
		words = e.quoted(ctx, s.pod, s.container.Name, previous)
	}
	return strings.TrimSuffix(exit(end)+": "+words, ": "), nil
}

// stoppable are the exit codes of a container that was stopped on request: it exited, or it died of SIGTERM or SIGKILL.
var stoppable = map[int32]bool{0: true, 137: true, 143: true}

func exit(end *corev1.ContainerStateTerminated) string {
	switch {
	case end.ExitCode == 0:
		return "ends with exit code 0 and should keep running"
	case end.Reason == "" || end.Reason == "Error":
		return fmt.Sprintf("crashes with exit code %d", end.ExitCode)
	}
	return fmt.Sprintf("crashes with exit code %d (%s)", end.ExitCode, end.Reason)
}

// blockedCause says why a container cannot be created.
func (e Explainer) blockedCause(ctx context.Context, s suspect) (string, error) {
	reason, message := s.container.State.Waiting.Reason, s.container.State.Waiting.Message
	switch reason {
	case "ErrImagePull", "ImagePullBackOff":
		return e.pullCause(ctx, s, message)
	case "CrashLoopBackOff":
		return "ends again and again", nil
	case "CreateContainerConfigError":
		return "lacks configuration: " + e.stableText(message), nil
	}
	return strings.TrimSuffix("cannot be started: "+reason+": "+e.stableText(message), ": "), nil
}

// pullCause returns the reason from the kubelet's messages, while the kubelet pulls and while it waits. Before Kubernetes 1.32, the status
// does not repeat the reason during a wait, but an event has it.
func (e Explainer) pullCause(ctx context.Context, s suspect, message string) (string, error) {
	if _, cause, ok := strings.Cut(message, "ErrImagePull: "); ok {
		message = cause
	}
	if message == "" || strings.HasPrefix(message, "Back-off") {
		events, err := e.events(ctx, s.pod)
		if err != nil {
			return "", err
		}
		failed := events.latest(func(e corev1.Event) bool {
			return e.Reason == "Failed" && strings.HasPrefix(e.Message, "Failed to pull image")
		})
		message = ""
		if failed != nil {
			_, message, _ = strings.Cut(failed.Message, `": `)
		}
	}
	if _, desc, ok := strings.Cut(message, " desc = "); ok && strings.HasPrefix(message, "rpc error: ") {
		message = desc
	}
	return strings.TrimSuffix(fmt.Sprintf("waits for the image %s, which cannot be pulled: %s", s.container.Image, e.stableText(message)), ": "), nil
}
