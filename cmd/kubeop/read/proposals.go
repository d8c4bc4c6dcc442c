package read

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
)

// previews describes previews, a line each.
func previews(of []v1alpha1.PreviewStatus) []string {
	lines := make([]string, len(of))
	for i, p := range of {
		from := "branch " + p.Branch
		switch {
		case p.PullRequest != 0:
			from = fmt.Sprintf("pull request %d of %s", p.PullRequest, p.Branch)
		case p.Branch == "":
			from = "of " + p.PreviewOf
		}
		lines[i] = colons(from, p.Project, few.ShortRevision(p.Revision), p.Message)
	}
	return lines
}

// plans describes the plans of pull requests, a line each.
func plans(of []v1alpha1.PullRequestPlan) []string {
	lines := make([]string, len(of))
	for i, p := range of {
		lines[i] = colons(fmt.Sprintf("pull request %d", p.Number), few.ShortRevision(p.Revision), p.Message)
	}
	return lines
}

// guardLines describes which guards hold, a line each.
func guardLines(of []v1alpha1.GuardStatus) []string {
	lines := make([]string, len(of))
	for i, g := range of {
		lines[i] = colons(g.Name, string(g.State), g.Reason)
	}
	return lines
}

// promotions describes what was promoted last, a line for each app.
func promotions(of []v1alpha1.Promoted) []string {
	lines := make([]string, len(of))
	for i, p := range of {
		lines[i] = colons(p.App, p.Changes, cmp.Or(p.PullRequest, p.Commit))
	}
	return lines
}

// colons joins the parts that there are.
func colons(parts ...string) string {
	var there []string
	for _, part := range parts {
		if part != "" {
			there = append(there, part)
		}
	}
	return strings.Join(there, ": ")
}
