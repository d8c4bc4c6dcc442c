package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/tree"
)

// errUnfetched means that the repository was never fetched, so it holds no folder yet.
var errUnfetched = errors.New("not fetched yet")

// Folder returns the folder of an app, as of the commit that last changed it. The error is the outcome of the app's step: it waits for the
// repository's first fetch, and retries with backoff after any other error. While the remote is being fetched, the error is
// *cache.Unanswered, and the app is woken at the end.
func (r *Reconciler) Folder(ctx context.Context, app *v1alpha1.App) (*folder.Folder, error) {
	folder, err := r.folder(ctx, app)
	switch {
	case err == nil:
		return folder, nil
	case errors.Is(err, errUnfetched):
		return nil, step.Wait(v1alpha1.ProgressingReason, time.Second, "waits for its repository: %w", err)
	case errors.Is(err, failure.ErrBusy), errors.As(err, new(*cache.Unanswered)):
		return nil, err
	}
	return nil, step.Fail(v1alpha1.FetchFailedReason, err)
}

// Declaring returns the Repository that declares an app, and its tenant. It refuses one that may not declare the app, whatever the app's labels
// and annotations say.
func (r *Reconciler) Declaring(ctx context.Context, app *v1alpha1.App) (repository *v1alpha1.Repository, tenant string, err error) {
	name := app.Labels[v1alpha1.RepositoryLabel]
	repository = &v1alpha1.Repository{}
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, repository)
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("repository %s, which declared the app, does not exist: create it again, or delete the app; %s", name,
			command.Delete(command.Administrator, "app", app))
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading repository %s: %w", name, err)
	}
	tenant, ok := declares(repository, app)
	if !ok {
		return nil, "", fmt.Errorf("repository %s cannot declare apps in namespace %s", name, app.Namespace)
	}
	return repository, tenant, nil
}

func (r *Reconciler) folder(ctx context.Context, app *v1alpha1.App) (*folder.Folder, error) {
	digest := treeOf(app)
	if app.Labels[v1alpha1.RepositoryLabel] == "" || digest == "" {
		return nil, errors.New("the app was not declared in a repository, so it has no folder: give it inline manifests or a chart repository, with spec.raw.manifests or spec.helm.repository")
	}
	repository, tenant, err := r.Declaring(ctx, app)
	if err != nil {
		return nil, err
	}
	// If the last fetch brought the folder, no credentials are needed.
	last, asked, ok := r.Commits.Last(string(repository.UID))
	if ok && asked.Generation == repository.Generation {
		if folder, err := last.Folder(digest); err == nil {
			return folder, nil
		}
	}
	if repository.Status.LastAttemptedRevision == "" {
		return nil, fmt.Errorf("repository %s: %w", repository.Name, errUnfetched)
	}
	return r.olderFolder(ctx, repository, app, tenant)
}

// olderFolder returns a folder that is not in the newest fetched commit: the operator has just started with an empty store, or the newest
// commit has an invalid version of the folder. The commit with which the app was declared still has it. A failure is cached, because
// otherwise every event of the app would cause a fetch.
func (r *Reconciler) olderFolder(ctx context.Context, repository *v1alpha1.Repository, app *v1alpha1.App, tenant string) (*folder.Folder, error) {
	digest := treeOf(app)
	commit := v1alpha1.CommitOf(app.Annotations[v1alpha1.RevisionAnnotation])
	query := r.query(repository, repository.GetSchedule().Every())
	query.Request += "/" + cache.QuestionOf(app).Request + "/" + commit + "/" + digest
	query.Key, query.Version, query.Caller = "app/"+string(app.UID), query.Version+digest, client.ObjectKeyFromObject(app)
	var stored *folder.Folder
	found, err := r.Older.Get(query, func() (cache.Fetcher[*folder.Folder], error) {
		source, err := r.Source(ctx, repository)
		if err != nil {
			return nil, err
		}
		if stored, err = r.Git.Folder(source, digest); err == nil {
			return nil, nil
		}
		source.Ref, source.Tenant = upstream.Narrowed(source.Ref, commit), tenant
		return func(ctx context.Context) (*folder.Folder, error) { return r.fetchFolder(ctx, source, digest) }, nil
	})
	if stored != nil || err != nil {
		return stored, err
	}
	// From now on the store has it; only failures have to be cached.
	r.Older.Forget(query.Key)
	return found, nil
}

// fetchFolder fetches a commit only to get one folder of it.
func (r *Reconciler) fetchFolder(ctx context.Context, source git.Source, digest string) (*folder.Folder, error) {
	commit, err := r.Git.Fetch(ctx, source)
	var folder *folder.Folder
	if err == nil {
		folder, err = commit.Folder(digest)
	}
	if errors.Is(err, failure.ErrNotFound) {
		return nil, fmt.Errorf("the app's folder is gone with the commit that declared it: push a change of the folder: %w", err)
	}
	return folder, err
}

// declares refuses a folder of another tenant, whatever the app's labels and annotations say. It returns the tenant.
func declares(repository *v1alpha1.Repository, app *v1alpha1.App) (tenant string, ok bool) {
	tenant = repository.Spec.Tenant
	folder := app.Annotations[v1alpha1.FolderAnnotation]
	if tenant == "" {
		within := strings.Trim(strings.TrimPrefix(folder, repository.Spec.Path), "/")
		tenant, _, _ = strings.Cut(strings.TrimPrefix(within, layout.TenantsFolder+"/"), "/")
		if tenant == v1alpha1.PlatformTenant && !strings.HasPrefix(within, layout.PlatformFolder+"/") {
			return "", false
		}
	}
	return tenant, tenant != "" && v1alpha1.TenantOf(app.Namespace) == tenant
}

// treeOf returns the Git hash of an app's folder.
func treeOf(app *v1alpha1.App) string {
	hash, _, _ := strings.Cut(app.Annotations[v1alpha1.TreeAnnotation], tree.DigestSeparator)
	return hash
}
