package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// newest fetches the newest commit together with the facts that accept needs, because getting them may need the network.
func (r *Reconciler) newest(ctx context.Context, repository *v1alpha1.Repository, source git.Source) (git.Commit, error) {
	if repository.Spec.Verify != nil {
		who, err := r.signers(ctx, repository.Spec.Verify)
		if err != nil {
			return git.Commit{}, err
		}
		source.Signers = &who
	}
	if compared(repository) {
		source.After = hashOf(repository.Status.LastAttemptedRevision)
	}
	return r.Git.Fetch(ctx, source)
}

// signers reads the keys that commits must be signed with.
func (r *Reconciler) signers(ctx context.Context, spec *v1alpha1.GitVerification) (signature.Verification, error) {
	secret := &corev1.Secret{}
	err := r.credentials.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: spec.SecretRef.Name}, secret)
	if apierrors.IsNotFound(err) {
		return signature.Verification{}, fmt.Errorf("secret %s/%s of verify.secretRef does not exist: create it; %s", r.Namespace, spec.SecretRef.Name,
			command.CreateSecret(r.Namespace, spec.SecretRef.Name, "people.pub"))
	}
	if err != nil {
		return signature.Verification{}, fmt.Errorf("reading secret %s/%s: %w", r.Namespace, spec.SecretRef.Name, err)
	}
	return signature.Verification{Mode: spec.Mode, Keys: secret.Data, Now: r.Steps.Clock.Now}, nil
}

// accept decides whether the fetched commit may follow the last accepted one. If not, it is held, and the last accepted commit is used in
// its place. If that commit cannot be read any more, the step ends here, and the running objects are not changed.
func (r *Reconciler) accept(ctx context.Context, s *scope) error {
	s.source = sourceOf(s.repository)
	objection, err := r.objection(ctx, s)
	if err != nil || objection == nil {
		return err
	}
	s.held = s.commit.Revision
	last, err := s.commit.Earlier(s.repository.Status.LastAttemptedRevision)
	if errors.Is(err, failure.ErrNotFound) {
		s.commit = git.Commit{}
		return objection
	}
	s.commit, s.unaccepted = last, objection
	return err
}

// accepted reports a commit that is held.
func (r *Reconciler) accepted(_ context.Context, s *scope) error { return s.unaccepted }

// objection returns the error with which the step ends for a commit that may not follow, nil for one that may.
func (r *Reconciler) objection(ctx context.Context, s *scope) (objection, err error) {
	if unsigned := s.commit.Unsigned; unsigned != nil {
		reason, _ := verdict.Of(unsigned)
		return step.Stop(reason, fmt.Errorf("%s is held, nothing of it is applied: %w", s.commit.Revision, unsigned)), nil
	}
	last := s.repository.Status.LastAttemptedRevision
	if !compared(s.repository) {
		return nil, nil
	}
	about := s.commit.Ancestry
	switch {
	case hashOf(last) == s.commit.Hash:
		return nil, r.useConfirmation(ctx, s)
	case about.Of != hashOf(last):
		// The commit was fetched before the last one was accepted, so the cached answer does not say how they are related.
		r.Commits.Forget(string(s.repository.UID))
		return nil, step.Soon(time.Second)
	case about.Descends, git.HigherVersion(s.commit.Revision, last) && bySemver(s.repository):
		return nil, nil
	case confirmed(s.repository, s.commit):
		return nil, r.useConfirmation(ctx, s)
	}
	return step.Stop(v1alpha1.HistoryRewrittenReason, rewritten(s, last)), nil
}

func rewritten(s *scope, last string) error {
	what := fmt.Sprintf("%s does not descend from %s, which was accepted last", s.commit.Revision, last)
	if beyond := s.commit.Ancestry.Beyond; beyond != "" {
		what = fmt.Sprintf("%s is not known to descend from %s, which was accepted last (%s)", s.commit.Revision, last, beyond)
	}
	return fmt.Errorf("%s: it is held, nothing of it is applied; push a commit that descends, or if it is meant, %s",
		what, command.Annotate(command.Admin.In(s.repository.Spec.Tenant), "repository", s.repository, v1alpha1.ConfirmHistoryAnnotation, s.commit.Hash))
}

// compared reports whether new commits are compared with the last accepted one: there is one, it has the same URL and ref, and the spec
// does not allow any history. A status without a source counts as the same source.
func compared(repository *v1alpha1.Repository) bool {
	status := &repository.Status
	return repository.Spec.History != v1alpha1.HistoryAny && hashOf(status.LastAttemptedRevision) != "" &&
		(status.Source == "" || status.Source == sourceOf(repository))
}

// sourceOf names the URL and the ref of a repository.
func sourceOf(repository *v1alpha1.Repository) string {
	ref := repository.Spec.Ref
	if ref == nil {
		return repository.Spec.URL
	}
	source := repository.Spec.URL
	for _, part := range []struct{ name, value string }{
		{"commit", ref.Commit}, {"name", ref.Name}, {"semver", ref.SemVer}, {"tag", ref.Tag}, {"branch", ref.Branch},
	} {
		if part.value != "" {
			source += " " + part.name + "=" + part.value
		}
	}
	return source
}

// bySemver reports whether a semver range selects the commit: tags of different versions need not descend from each other.
func bySemver(repository *v1alpha1.Repository) bool {
	ref := repository.Spec.Ref
	return ref != nil && ref.SemVer != "" && ref.Commit == "" && ref.Name == ""
}

// confirmed reports whether an annotation confirms this one commit.
func confirmed(repository *v1alpha1.Repository, commit git.Commit) bool {
	confirmation := repository.Annotations[v1alpha1.ConfirmHistoryAnnotation]
	return confirmation != "" && (confirmation == commit.Hash || confirmation == commit.Revision)
}

// useConfirmation removes the confirmation of an accepted commit, so that it does not accept the same commit a second time.
func (r *Reconciler) useConfirmation(ctx context.Context, s *scope) error {
	if !confirmed(s.repository, s.commit) {
		return nil
	}
	return step.Withdraw(ctx, r.Client, s.repository, v1alpha1.ConfirmHistoryAnnotation)
}

// hashOf returns the commit in a revision.
func hashOf(revision string) string {
	_, hash, _ := strings.Cut(revision, "sha1:")
	return hash
}
