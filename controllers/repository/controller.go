// Package repository applies the Tenants, Projects and Apps that a Git repository declares.
package repository

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
	"github.com/kubeop/kubeop/controllers/pushes"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Reconciler reconciles Repositories.
type Reconciler struct {
	Client client.Client
	// Direct reads and writes without a cache: Secrets, and the declared objects.
	Direct  client.Client
	Watch   *kube.Watch
	Applier *apply.Applier
	Steps   *step.Runner
	Git     *git.Store
	// Tree reads commits. The cluster of its Placement is this one.
	Tree *tree.Reader
	// Usage counts how much of their limits and budgets tenants use.
	Usage *usage.Counter
	*Remotes
	// Refusals records which Apps and Projects of a commit are refused.
	Refusals *refusal.Index
	// Namespace holds the repositories' credentials; Secrets has the metadata of the Secrets there.
	Namespace string
	Secrets   client.Reader
	Beside

	records     records
	credentials credentials.Cache
}

// Beside is what the status of a Repository reports beside the steps.
type Beside struct {
	// Hook has the keys of the push hook.
	Hook *pushes.Hook
	// CommitStatuses returns which statuses of commits the Git host shows, and the condition about them. secrets are the versions of the
	// Secrets that the Repository names.
	CommitStatuses func(repository *v1alpha1.Repository, secrets string) (step.Note, []v1alpha1.ReportedStatus)
	PullRequests   PullRequests
}

// PullRequests plans pull requests.
type PullRequests interface {
	// Fetched is called after each fetch of a Repository. It does not wait.
	Fetched(repository *v1alpha1.Repository, newest git.Commit)
	// StatusOf returns what was planned, as CommitStatuses does.
	StatusOf(repository *v1alpha1.Repository, secrets string) (step.Note, []v1alpha1.PullRequestPlan)
	Forget(repository string)
}

// Reconcile applies the newest valid commit of one repository. When a Repository is deleted, the declared objects stay, because they belong
// to the tenants.
func (r *Reconciler) Reconcile(ctx context.Context, repository *v1alpha1.Repository) (ctrl.Result, error) {
	s := newScope(repository)
	if !repository.DeletionTimestamp.IsZero() {
		result, err := r.Steps.Finalize(ctx, repository, s)
		if err == nil && !controllerutil.ContainsFinalizer(repository, v1alpha1.Finalizer) { // The finalizer was removed, for whatever reason.
			r.forget(repository)
		}
		return result, err
	}
	r.readBeside(ctx, s)
	// Accepted runs after Synced: if the newest commit is not accepted, the last accepted one is still synced before Accepted stops the steps.
	return r.Steps.Run(ctx, repository, s,
		step.Of(v1alpha1.FetchedCondition, s, r.fetch),
		step.Of(v1alpha1.SyncedCondition, s, withCommit(r.sync)),
		step.Of(v1alpha1.AcceptedCondition, s, withCommit(r.reportHeld)),
		step.Of(v1alpha1.TreeValidCondition, s, withCommit(r.checkProblems)))
}

// readBeside reads what the status has beside the steps, and sets the pause between two polls, which depends on the push hook.
func (r *Reconciler) readBeside(ctx context.Context, s *scope) {
	hook := r.Hook.Note(ctx, s.repository)
	secrets := r.secretVersions(s.repository)
	status, statuses := r.CommitStatuses(s.repository, secrets)
	comment, plans := r.PullRequests.StatusOf(s.repository, secrets)
	s.beside = beside{[]step.Note{hook, status, comment}, statuses, plans}
	_, failed := r.Commits.Failure(string(s.repository.UID))
	s.every = r.Hook.Interval(s.repository, hook.Status != "", failed, r.Steps.Clock.Now())
}
