package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/jitter"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/tree"
)

// frozen returns the error with which the step ends for a new commit while a freeze of its tenant is in force, nil if none holds it. A window
// does not hold the first commit, nor the first one after administrators changed the URL or the ref. A Tenant that administrators froze holds
// these too, and no confirmation of its owners counts.
func (r *Reconciler) frozen(ctx context.Context, s *scope) (objection, err error) {
	name, last := s.repository.Spec.Tenant, &s.repository.Status
	before := v1alpha1.CommitOf(last.LastAttemptedRevision)
	if name == "" || before == s.commit.Hash {
		return nil, nil
	}
	tenant, err := r.tenant(ctx, name)
	if err != nil {
		return nil, err
	}
	hold, err := freeze.Of(tenant, r.Steps.Clock.Now())
	switch {
	case hold.ByAdministrators():
	case before == "", last.Source != "" && last.Source != upstream.Source(s.repository):
		return nil, nil
	case hold == nil && err == nil, confirms(s.repository, v1alpha1.ConfirmFreezeAnnotation, s.commit):
		return nil, nil
	case err != nil: // tenant.yaml is checked for this. To apply the commit would be the greater harm.
		return step.Stop(v1alpha1.FrozenReason, fmt.Errorf("%s is held, because %w; %s", s.commit.Revision, err, s.confirmFreeze(s.commit.Hash))), nil
	}
	s.waits, s.hold = s.commit, hold
	return r.waitFor(s, ""), nil
}

// waitFor ends the step until the end of the freeze. problems is a sentence about the files of the commit that waits.
func (r *Reconciler) waitFor(s *scope, problems string) error {
	if s.hold.ByAdministrators() {
		return step.GoOn(step.Wait(v1alpha1.FrozenReason, jitter.JitteredIntervalDuration(s.every), "%s waits%s: tenant %s is frozen, and the newest commit is applied when that ends; it lasts %s",
			s.waits.Revision, problems, s.repository.Spec.Tenant, s.hold))
	}
	rest := max(s.hold.Until.Sub(r.Steps.Clock.Now()), time.Second)
	s.again = backoff.Sooner(s.again, rest) // It counts if TreeValid reports problems of the accepted commit.
	return step.GoOn(step.Wait(v1alpha1.FrozenReason, min(rest, jitter.JitteredIntervalDuration(s.every)), "%s waits %s, and is applied then%s; to apply it before, %s",
		s.waits.Revision, s.hold, problems, s.confirmFreeze(s.waits.Hash)))
}

func (s *scope) confirmFreeze(commit string) string {
	return command.Annotate(command.Admin.In(s.repository.Spec.Tenant), "repository", s.repository, v1alpha1.ConfirmFreezeAnnotation, commit)
}

// reviewed is what was found in the files of a commit that waits.
type reviewed struct{ revision, problems string }

// review reads the files of the commit that waits for the end of a freeze, so that people can correct them before. It returns a sentence about
// their problems, "" if there are none. A commit is reviewed once.
func (r *Reconciler) review(ctx context.Context, s *scope) (problems string, err error) {
	p, spec := s.progress, s.repository.Spec
	if p.reviewed.revision == s.waits.Revision {
		return p.reviewed.problems, nil
	}
	root, err := s.waits.Root.Sub(upstream.Folder(spec.Path))
	if err != nil {
		return "", pathError(fmt.Errorf("spec.path in %s: %w", s.waits.Revision, err))
	}
	reader, err := r.reader(ctx, spec.Tenant)
	if err != nil {
		return "", err
	}
	now := reader.Read(files.Of(root), tree.Scope{Repository: s.repository.Name, Tenant: spec.Tenant, Path: spec.Path}, p.tree)
	if file, err := now.Unread(); err != nil {
		return "", step.Fail(v1alpha1.FetchFailedReason, fmt.Errorf("reading %s: %w", file, err))
	}
	now.All(func(first tree.Problem) bool {
		problems = fmt.Sprintf(", with %s, the first of which is: %s", few.Count(now.Counts().Problems, "problem"), first)
		return false
	})
	p.reviewed = reviewed{s.waits.Revision, problems}
	return problems, nil
}
