// Package update describes changes of apps' files that controllers want in Git.
package update

import (
	"path"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/slug"
)

// Update is a change of an App's file.
type Update struct {
	// Key identifies what it is about, such as "image <uid>". Version identifies the change: the same Version is asked for only once.
	Key, Version string
	App          *v1alpha1.App
	// Changes are made if the file has what they say: otherwise it was changed meanwhile, and nothing is written.
	Changes []Change
	// What names the change in messages. Title and Body are the message of the commit.
	What, Title, Body string
	Mode              v1alpha1.WriteMode
	// Branch is the name of the branch of a pull request, after "kubeop/". Letters, digits and hyphens of it are used.
	Branch string
	// Done is called after each attempt.
	Done func()
}

// Change is a field that gets a value.
type Change struct {
	// Field as gitops/edit.ParsePath reads it, such as "spec.image.reference".
	Field string
	// Was is what the file has; nil if it has nothing. Value is what it gets.
	Was, Value any
}

// Written is an update that was written.
type Written struct {
	// Commit that has it, and PullRequest the web page of the pull request with it; "" for a commit to the branch that the repository follows.
	Commit, PullRequest string
}

// Writer writes updates. It never waits.
type Writer interface {
	// Ask asks for an update, and returns what was written of it; nil if it is not written yet. An update with the same key replaces one that is
	// not the same.
	Ask(u Update) *Written
	// Note returns a condition that is True while the update of a key cannot be written, and says why. It stays until the first attempt since the
	// start has ended.
	Note(key, condition string) step.Note
	// Last returns the last update of a key, and what was written of it: nil if it is not written yet, or was dropped.
	Last(key string) (Update, *Written)
	// Drop drops an update that was asked for; one that is being written is not tried again.
	Drop(key string)
}

// File is the App's file, relative to the root of its repository.
func (u Update) File() string {
	return path.Join(u.App.Annotations[v1alpha1.FolderAnnotation], layout.AppFile)
}

// ProposedOn is the branch of a pull request.
func (u Update) ProposedOn() string { return "kubeop/" + slug.Of(u.Branch, 100) }
