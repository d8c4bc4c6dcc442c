package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/tree"
)

// checkProblems reports whether the commit is completely applied. It stops at deletions that wait for confirmation, and at invalid files;
// the objects of these keep their last good state.
func (r *Reconciler) checkProblems(_ context.Context, s *scope) error {
	if n := len(s.verdict.Held); n > 0 {
		return step.Stop(v1alpha1.DeletionsHeldReason, fmt.Errorf(
			"%s is held back, because %s; status.held lists all that would go: %s. If that is meant, %s. If not, push the files back",
			s.commit.Revision, s.verdict.Why, listed(s.verdict.Lines),
			command.Annotate(command.Admin.In(s.repository.Spec.Tenant), "repository", s.repository, v1alpha1.ConfirmAnnotation, s.verdict.Token)))
	}
	if n := s.problemCount(); n > 0 {
		message := s.problems(1)[0]
		if n > 1 {
			message += fmt.Sprintf(" (and %d more; kubectl describe repository %s)", n-1, s.repository.Name)
		}
		return step.Stop(v1alpha1.InvalidTreeReason, errors.New(message))
	}
	s.valid = s.synced
	return nil
}

// problems returns the problems of the commit, up to a maximum number.
func (s *scope) problems(most int) []string {
	var all []string
	s.found.All(func(p tree.Problem) bool {
		all = append(all, p.String())
		return len(all) < most
	})
	for _, p := range s.refusals() {
		if len(all) < most {
			all = append(all, p.String())
		}
	}
	return all
}

func (s *scope) problemCount() int {
	return s.found.Counts().Problems + len(s.refusals())
}

// reportRefusals reports on each App and Project with a problem in the commit that its newest version is refused. It keeps its last good
// state, so without that report, a user who looks only at the App would believe that the push was delivered. Those of previews are in the status
// of the Repository, too.
func (r *Reconciler) reportRefusals(s *scope) {
	refused := map[refusal.Unit]refusal.Refusal{}
	add := func(p tree.Problem) bool {
		unit := refusal.Unit{Kind: p.Of.Kind(), ObjectKey: p.Of.Key()}
		if _, known := refused[unit]; !known && p.Of.Project != "" {
			refused[unit] = refusal.Refusal{Revision: s.origin(p.Of).Revision, Place: p.Place(), Problem: p.Why}
		}
		return true
	}
	s.found.All(add)
	for _, preview := range s.found.Previews() {
		for _, p := range preview.AllProblems() {
			add(p)
		}
	}
	for _, p := range s.progress.refusals() {
		add(p)
	}
	r.Refusals.Set(s.repository.Name, refused)
	s.previews.Status = s.previewStatuses(r.Steps.Clock.Now())
}

// refusals are the problems of the commit that the API server reported. Those of previews are reported on their Apps and Projects only.
func (s *scope) refusals() []tree.Problem {
	return slices.DeleteFunc(s.progress.refusals(), func(p tree.Problem) bool { return s.found.OriginOf(p.Of) != nil })
}

// listed names some of many things.
func listed(names []string) string { return strings.Join(few.Of(names, 5), ", ") }
