package writeback

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/host"
)

// send writes an update to Git once.
func (w *Writer) send(ctx context.Context, to *pending) error {
	repository, _, err := w.Repositories.Declaring(ctx, to.App)
	if err != nil {
		return err
	}
	if err := writable(to.Update, repository); err != nil {
		return err
	}
	source, err := w.Repositories.Source(ctx, repository)
	if err != nil {
		return err
	}
	branch := commit.Remote{Store: w.Git, Source: source}
	into, err := branch.Branch(ctx)
	if err != nil {
		return err
	}
	request, err := requestOf(to.Update, into)
	if err != nil {
		return err
	}
	done, err := w.commits.Write(ctx, branch, request)
	if errors.Is(err, git.ErrMoved) && request.New {
		done, err = w.pushedBefore(ctx, source, request, to.File())
	}
	if err != nil {
		return err
	}
	written := &update.Written{Commit: done.Hash}
	if request.New && !done.Unchanged {
		if written.PullRequest, err = w.open(ctx, repository, request, into); err != nil {
			return err
		}
	}
	w.mu.Lock()
	to.written = written
	w.mu.Unlock()
	if request.New {
		return nil
	}
	return w.fetch(ctx, repository)
}

// pushedBefore returns the commit of an earlier attempt that pushed the branch of a pull request, and did not open it.
func (w *Writer) pushedBefore(ctx context.Context, source git.Source, r commit.Request, file string) (commit.Result, error) {
	source.Ref = &sourcev1.GitRepositoryRef{Branch: r.Branch}
	there, err := w.Git.Fetch(ctx, source)
	if err != nil {
		return commit.Result{}, err
	}
	left, err := commit.Changes(there.Root, there.Root, r.Edits)
	if err != nil || len(left) > 0 {
		return commit.Result{}, notWritable("the branch %s exists with other content of %s: who may push to the repository may delete it: git push origin --delete %s", r.Branch, file, r.Branch)
	}
	return commit.Result{Hash: there.Hash}, nil
}

// open opens the pull request of a pushed branch, and returns its web page.
func (w *Writer) open(ctx context.Context, repository *v1alpha1.Repository, r commit.Request, into string) (string, error) {
	auth, err := w.Repositories.APIAuth(ctx, repository)
	if err != nil {
		return "", err
	}
	git, err := host.Open(w.Network, host.Of(repository), auth, w.Clock.Now)
	if err != nil {
		return "", fmt.Errorf("%w; with Commit in place of PullRequest, kubeop needs no API of a Git host", err)
	}
	defer git.Close()
	number, link, err := git.OpenPullRequest(ctx, host.PullRequest{
		Title: r.Title, Body: r.Body + " A newer one gets a pull request of its own.", From: r.Branch, Into: into,
	})
	return cmp.Or(link, fmt.Sprintf("pull request %d", number)), err
}

// fetch requests a fetch of the Repository, as the push hook does.
func (w *Writer) fetch(ctx context.Context, repository *v1alpha1.Repository) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		meta.ReconcileRequestAnnotation: w.Clock.Now().UTC().Format(time.RFC3339Nano),
	}}})
	if err != nil {
		return fmt.Errorf("encoding the annotation: %w", err)
	}
	o := &v1alpha1.Repository{}
	o.Name = repository.Name
	if err := w.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("requesting a fetch of repository %s: %w", repository.Name, err)
	}
	return nil
}
