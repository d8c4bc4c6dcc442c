package preview

import (
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// With returns the statuses, with what is wrong in the cluster with each preview, by its project.
func With(statuses []v1alpha1.PreviewStatus, wrong map[string][]string) []v1alpha1.PreviewStatus {
	all := slices.Clone(statuses)
	for i := range all {
		lines := wrong[all[i].Project]
		switch {
		case len(lines) == 0:
		case all[i].Message == "":
			all[i].Message = first(lines)
		default:
			all[i].Message += "; " + first(lines)
		}
	}
	return all
}

// first is the first of some lines, with the number of the others.
func first(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}
