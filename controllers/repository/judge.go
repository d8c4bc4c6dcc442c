package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/gitops/tree"
)

// judge says whether the commit is in the cluster as a whole: it stops at deletions that wait for a confirmation, and at files
// that are wrong, whose objects stay as they last were.
func (r *Reconciler) judge(_ context.Context, s *scope) error {
	if n := len(s.verdict.Held); n > 0 {
		return step.Stop(v1alpha1.DeletionsHeldReason, fmt.Errorf(
			"%s is held back, because %s; status.held lists all that would go: %s. If that is meant, an administrator of the cluster confirms it with: "+
				"kubectl annotate repository %s --overwrite %s=%s. If not, push the files back",
			s.commit.Revision, s.verdict.Why, listed(s.verdict.Lines), s.repository.Name, v1alpha1.ConfirmAnnotation, s.verdict.Token))
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

// refusals are what the API server refused, in the order of files.
func (p *progress) refusals() []tree.Problem {
	var all []tree.Problem
	for _, problem := range p.refused {
		all = append(all, problem)
	}
	slices.SortFunc(all, func(a, b tree.Problem) int { return cmp.Compare(a.File, b.File) })
	return all
}
