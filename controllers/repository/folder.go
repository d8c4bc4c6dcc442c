package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch"
)

// Folder returns the folder of an app, as its repository held it in the commit that last changed it. It is
// fetch.ErrNotFound until the repository was fetched.
func (r *Reconciler) Folder(ctx context.Context, app *v1alpha1.App) (*fetch.Folder, error) {
	name, digest := app.Labels[v1alpha1.RepositoryLabel], app.Annotations[v1alpha1.TreeAnnotation]
	if name == "" || digest == "" {
		return nil, fmt.Errorf("the app was not declared in a repository, so it has no folder: give it inline manifests or a chart repository")
	}
	repository := &v1alpha1.Repository{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, repository)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("repository %s: %w", name, fetch.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("reading repository %s: %w", name, err)
	}
	if !declares(repository, app) {
		return nil, fmt.Errorf("repository %s cannot declare apps in namespace %s", name, app.Namespace)
	}
	source, err := r.source(ctx, repository)
	if err != nil {
		return nil, err
	}
	folder, err := r.Git.Folder(source, digest)
	if !errors.Is(err, fetch.ErrNotFound) {
		return folder, err
	}
	// The store may be new, and the newest commit hold another folder: one that is wrong, and held back. The commit that
	// the app was declared with still holds its own.
	_, commit, _ := strings.Cut(app.Annotations[v1alpha1.RevisionAnnotation], "@sha1:")
	source.Ref = withCommit(source.Ref, commit)
	if _, err := r.Git.Fetch(ctx, source); err != nil {
		return nil, fmt.Errorf("fetching the commit of the app's folder: %w", err)
	}
	return r.Git.Folder(source, digest)
}

// withCommit returns the ref narrowed to one commit.
func withCommit(ref *sourcev1.GitRepositoryRef, commit string) *sourcev1.GitRepositoryRef {
	narrowed := &sourcev1.GitRepositoryRef{Commit: commit}
	if ref != nil {
		narrowed.Branch = ref.Branch
	}
	return narrowed
}

// declares holds an app to the folders of its own tenant, whatever its labels and annotations say.
func declares(repository *v1alpha1.Repository, app *v1alpha1.App) bool {
	tenant := repository.Spec.Tenant
	folder := app.Annotations[v1alpha1.FolderAnnotation]
	if tenant == "" {
		within := strings.TrimPrefix(folder, repository.Spec.Path)
		tenant, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(within, "/"), "tenants/"), "/")
	}
	return tenant != "" && strings.HasPrefix(app.Namespace, v1alpha1.HomeNamespace(tenant)+"-")
}
