package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// judge says whether the commit is in the cluster as a whole: it stops at files that are wrong, whose projects keep
// their last good state, and at deletions that wait for a confirmation.
func (r *Reconciler) judge(_ context.Context, s *scope) error {
	if n := len(s.problems); n > 0 {
		message := s.problems[0]
		if n > 1 {
			message += fmt.Sprintf(" (and %d more; kubectl describe repository %s)", n-1, s.repository.Name)
		}
		return step.Stop(v1alpha1.InvalidTreeReason, errors.New(message))
	}
	if n := len(s.held); n > 0 {
		return step.Stop(v1alpha1.DeletionsHeldReason, fmt.Errorf(
			"%s would delete %d objects, so they are kept: %s; if that is meant: kubectl annotate repository %s --overwrite %s=%s",
			s.commit.Revision, n, strings.Join(told(s.held), ", "), s.repository.Name, v1alpha1.ConfirmAnnotation, s.commit.Revision))
	}
	s.valid = true
	return nil
}
