package repositories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/rollback"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// restore makes a request the one that brings an app back, by the same rules as kubeop rollback.
func (r *Repositories) restore(ctx context.Context, p *place, to string, request *commit.Request) error {
	app := &v1alpha1.App{}
	err := r.Objects.Get(ctx, p.ref.Key(), app)
	switch {
	case apierrors.IsNotFound(err):
		return problem.New(problem.NotFound, "The cluster does not have the app.")
	case err != nil:
		return fmt.Errorf("reading %s: %w", p.ref, err)
	}
	back, err := rollback.To(app, p.name(), to)
	if err != nil {
		return problem.New(problem.Conflict, err.Error())
	}
	seen := rollback.Newest(app)
	if seen == "" {
		return problem.New(problem.Conflict, "No commit declared the "+p.name()+".")
	}
	was, err := r.commitsOf(ctx, p, back, seen)
	if err != nil {
		return err
	}
	folder := p.folderOf()
	tree, err := was[0].Root.Digest(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.NotFound, "The commit "+rollback.Short(back)+" does not have "+folder+".")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", folder, err)
	}
	request.Title, request.Body = rollback.Message(p.ref.Path(), folder, back)
	request.Base, request.Edits = was[1].Root, []commit.Edit{commit.Restore{Folder: path.Dir(p.file), Tree: tree}}
	return nil
}
