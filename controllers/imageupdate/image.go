package imageupdate

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/edit"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// image is an image to write to the file of an App.
type image struct {
	app identity.Ref
	// file is the App's file, relative to the root of the repository that the Repository of the name follows.
	repository, file string
	// was is what the App's spec says, and reference and tag what the policy chose.
	was, reference, tag string
	how                 v1alpha1.ImageWrite
}

// imageOf returns the image to write for an App.
func imageOf(app *v1alpha1.App, chosen *v1alpha1.ImageStatus) image {
	ref, _ := identity.Of(app)
	return image{
		app: ref, repository: app.Labels[v1alpha1.RepositoryLabel], file: path.Join(app.Annotations[v1alpha1.FolderAnnotation], layout.AppFile),
		was: app.Spec.Image.Reference, reference: chosen.Reference, tag: chosen.Tag, how: app.Spec.Image.Policy.Write,
	}
}

// committer is the author of the commits.
var committer = draft.Person{Name: "kubeop", Email: "kubeop@" + v1alpha1.GroupVersion.Group}

// referencePath is the field that is written.
var referencePath = edit.Path{"spec", "image", "reference"}

// writable refuses what can never be written.
func writable(repository *v1alpha1.Repository, app *v1alpha1.App, to image) error {
	ref := repository.Spec.Ref
	switch {
	case path.Base(path.Dir(to.file)) != app.Name:
		return notWritable("the file of the app is not known")
	case ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Commit != "" || ref.Name != ""):
		return notWritable("the repository %s follows no branch, so there is nothing to commit to: name one in its spec.ref.branch in Git, or remove policy.write from the file", repository.Name)
	case repository.Spec.Verify != nil && to.how == v1alpha1.WriteCommit:
		return notWritable("the repository %s accepts signed commits only (spec.verify), and those of kubeop have no signature: write PullRequest as policy.write in the file, and merge with a signed commit", repository.Name)
	}
	return nil
}

// request is the commit of an image.
func (i image) request(into string) commit.Request {
	r := commit.Request{
		ID: string(uuid.NewUUID()), Title: fmt.Sprintf("Update %s/%s to %s", i.app.Project, i.app.App, i.tag),
		Body:   fmt.Sprintf("The policy of the app chose %s. Before it was %s.", i.reference, i.was),
		Author: committer, Committer: committer, Branch: into,
		Edits: []commit.Edit{commit.Set{File: i.file, Fields: []commit.Field{{Path: referencePath, Was: i.was, Value: i.reference}}}},
	}
	if i.how == v1alpha1.WritePullRequest {
		r.Branch, r.New = i.branch(), true
	}
	return r
}

var notInBranch = regexp.MustCompile(`[^A-Za-z0-9-]+`)

// branch is the name of the branch for a pull request. The digest is part of it, because a tag may move.
func (i image) branch() string {
	_, digest, _ := strings.Cut(i.reference, "@sha256:")
	return "kubeop/" + strings.Join([]string{i.app.Project, i.app.App, strings.Trim(notInBranch.ReplaceAllString(i.tag, "-"), "-"), digest[:min(len(digest), 8)]}, "-")
}

// errNotWritable means that the repository cannot be written to, whatever is tried.
var errNotWritable = errors.New("not writable")

func notWritable(format string, args ...any) error {
	return failure.New(errNotWritable, format, args...)
}
