package health

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Logs returns the end of a container's log, or of the log of its previous run. It may contain secrets.
type Logs func(ctx context.Context, namespace, pod, container string, previous bool) (string, error)

const (
	logLines = 20
	// logBytes has room for 20 long lines. It must not be too small, because the API server cuts off the end, which matters most.
	logBytes = 64 << 10
	// logTimeout bounds the wait for a node that does not answer.
	logTimeout = 5 * time.Second
)

// LogsOf returns Logs that read with the connection of config, at most 20 lines and 64 KiB within 5 seconds.
func LogsOf(config *rest.Config) (Logs, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of logs: %w", err)
	}
	return func(ctx context.Context, namespace, pod, container string, previous bool) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, logTimeout)
		defer cancel()
		options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes))}
		stream, err := core.Pods(namespace).GetLogs(pod, options).Stream(ctx)
		if err != nil {
			return "", fmt.Errorf("reading the log of pod %s: %w", pod, err)
		}
		defer stream.Close()
		text, err := io.ReadAll(io.LimitReader(stream, logBytes))
		if err != nil {
			return "", fmt.Errorf("reading the log of pod %s: %w", pod, err)
		}
		return dropCutLine(string(text)), nil
	}, nil
}

// dropCutLine drops the last line if the limit cut it, unless it is the only one.
func dropCutLine(text string) string {
	whole := strings.LastIndexByte(text, '\n')
	if len(text) < logBytes || whole < 0 {
		return text
	}
	return text[:whole]
}

// quoted returns the last nonempty line that a run of a container wrote and, of a short log, the first one, which often names the cause of
// what follows. If the log cannot be read, because the node does not answer or the container was removed, it returns "", and the message
// has only the exit code.
func (e Explainer) quoted(ctx context.Context, pod *corev1.Pod, container string, previous bool) string {
	if e.Logs == nil {
		return ""
	}
	text, err := e.Logs(ctx, pod.Namespace, pod.Name, container, previous)
	if err != nil {
		return ""
	}
	last, first := e.lastWords(text), e.firstWords(text)
	if first == last || strings.Count(text, "\n") >= logLines {
		return last
	}
	return last + "; its log begins: " + first
}
