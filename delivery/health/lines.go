package health

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LastLines returns the last lines, at most n, that the newest pod of a Job wrote, each on one line and masked. If the log cannot be read,
// it returns no lines.
func (e Explainer) LastLines(ctx context.Context, job *unstructured.Unstructured, n int) []string {
	pods, err := e.podsOf(ctx, job)
	if err != nil || len(pods) == 0 || e.Logs == nil {
		return nil
	}
	newest := &pods[0]
	for i := range pods {
		if newest.CreationTimestamp.Before(&pods[i].CreationTimestamp) {
			newest = &pods[i]
		}
	}
	text, err := e.Logs(ctx, newest.Namespace, newest.Name, newest.Spec.Containers[0].Name, false)
	if err != nil {
		return nil
	}
	var lines []string
	for _, line := range strings.Split(strings.ReplaceAll(e.masked(text), "\r", "\n"), "\n") {
		if line = shortened(oneLine(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-n):]
}
