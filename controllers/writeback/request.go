package writeback

import (
	"errors"
	"fmt"
	"path"

	"github.com/google/uuid"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/writeback/update"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/edit"
)

// committer is the author of the commits.
var committer = draft.Person{Name: "kubeop", Email: "kubeop@" + v1alpha1.GroupVersion.Group}

// writable refuses what can never be written.
func writable(u update.Update, repository *v1alpha1.Repository) error {
	ref := repository.Spec.Ref
	switch {
	case path.Base(path.Dir(u.File())) != u.App.Name:
		return notWritable("the file of the app is not known")
	case u.App.Annotations[v1alpha1.PreviewOfAnnotation] != "":
		return notWritable("the app is one of a preview: its file is in the branch %s, and only people write to that", u.App.Annotations[v1alpha1.BranchAnnotation])
	case ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Commit != "" || ref.Name != ""):
		return notWritable("the repository %s follows no branch, so there is nothing to commit to: name one in its spec.ref.branch in Git, or write nothing", repository.Name)
	case repository.Spec.Verify != nil && u.Mode == v1alpha1.WriteCommit:
		return notWritable("the repository %s accepts signed commits only (spec.verify), and those of kubeop have no signature: write PullRequest as spec.image.policy.write "+
			"or spec.promotion.write in Git, and merge with a signed commit", repository.Name)
	}
	return nil
}

// requestOf returns the commit of an update.
func requestOf(u update.Update, into string) (commit.Request, error) {
	set := commit.Set{File: u.File()}
	for _, c := range u.Changes {
		field, err := edit.ParsePath(c.Field)
		if err != nil {
			return commit.Request{}, fmt.Errorf("the field %s: %w", c.Field, err)
		}
		set.Fields = append(set.Fields, commit.Field{Path: field, Was: c.Was, Value: c.Value})
	}
	r := commit.Request{
		ID: uuid.NewString(), Title: u.Title, Body: u.Body, Author: committer, Committer: committer, Branch: into, Edits: []commit.Edit{set},
	}
	if u.Mode == v1alpha1.WritePullRequest {
		r.Branch, r.New = u.ProposedOn(), true
	}
	return r, nil
}

// errNotWritable means that the repository cannot be written to, whatever is tried.
var errNotWritable = errors.New("not writable")

func notWritable(format string, args ...any) error {
	return failure.New(errNotWritable, format, args...)
}
