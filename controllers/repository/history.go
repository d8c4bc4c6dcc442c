package repository

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/signature"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
)

// newest fetches the newest commit together with the facts that accept needs, because getting them may need the network.
func (r *Reconciler) newest(ctx context.Context, repository *v1alpha1.Repository, source git.Source) (git.Commit, error) {
	source, err := r.signed(ctx, repository, source)
	if err != nil {
		return git.Commit{}, err
	}
	if upstream.Compared(repository) {
		source.After = v1alpha1.CommitOf(repository.Status.LastAttemptedRevision)
		tenant, err := r.tenant(ctx, repository.Spec.Tenant)
		if err != nil {
			return git.Commit{}, err
		}
		source.WithAfter = tenant.Spec.Frozen || len(tenant.Spec.Freeze) > 0
	}
	commit, err := r.Git.Fetch(ctx, source)
	if err == nil {
		r.PullRequests.Fetched(repository, commit)
	}
	return commit, err
}

// SignedSource is Source with the keys of spec.verify.
func (r *Reconciler) SignedSource(ctx context.Context, repository *v1alpha1.Repository) (git.Source, error) {
	source, err := r.Source(ctx, repository)
	if err != nil {
		return source, err
	}
	return r.signed(ctx, repository, source)
}

// signed returns a source with the keys of spec.verify.
func (r *Reconciler) signed(ctx context.Context, repository *v1alpha1.Repository, source git.Source) (git.Source, error) {
	if repository.Spec.Verify == nil {
		return source, nil
	}
	who, err := r.signers(ctx, repository.Spec.Verify)
	source.Signers = &who
	return source, err
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
	return signature.Verification{Mode: spec.Mode, Keys: secret.Data, Now: r.Steps.Clock.Now, Secret: r.Namespace + "/" + spec.SecretRef.Name}, nil
}

// objection returns the error with which the step ends for a commit that may not follow, nil for one that may.
func (r *Reconciler) objection(s *scope) (objection, err error) {
	if unsigned := s.commit.Unsigned; unsigned != nil {
		reason, _ := verdict.Of(unsigned)
		return step.Stop(reason, fmt.Errorf("%s is held, nothing of it is applied: %w", s.commit.Revision, unsigned)), nil
	}
	last := s.repository.Status.LastAttemptedRevision
	if !upstream.Compared(s.repository) {
		return nil, nil
	}
	about := s.commit.Ancestry
	switch {
	case v1alpha1.CommitOf(last) == s.commit.Hash:
		return nil, nil
	case about.Of != v1alpha1.CommitOf(last):
		// The commit was fetched before the last one was accepted, so the cached answer does not say how they are related.
		r.Commits.Forget(string(s.repository.UID))
		return nil, step.Soon(time.Second)
	case about.Descends, git.HigherVersion(s.commit.Revision, last) && upstream.BySemver(s.repository):
		return nil, nil
	case confirms(s.repository, v1alpha1.ConfirmHistoryAnnotation, s.commit):
		return nil, nil
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

// confirms reports whether an annotation confirms this one commit.
func confirms(repository *v1alpha1.Repository, annotation string, commit git.Commit) bool {
	confirmation := repository.Annotations[annotation]
	return confirmation != "" && (confirmation == commit.Hash || confirmation == commit.Revision)
}
