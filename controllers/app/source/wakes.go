package source

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// Start wakes Apps when their source has answered. When one App finds a change of a shared source, Start also wakes the Apps that share it;
// for a commit, only those whose files the commit changes. The other Apps see the commit in their next Reconcile.
func (f *Fetcher) Start() {
	f.Answers.wake(f.Queue.Add)
	f.Answers.Commits.Changed = func(from string, was, is git.Commit) {
		for _, app := range f.sharing(from) {
			if was.Hash != is.Hash && !f.readsSame(app, was, is) {
				f.Queue.Add(app)
			}
		}
	}
	f.Answers.Pulled.Changed = func(from string, was, is artifact.Artifact) {
		for _, app := range f.sharing(from) {
			if was.Digest != is.Digest {
				f.Queue.Add(app)
			}
		}
	}
}

// sharing returns the Apps that share a source.
func (f *Fetcher) sharing(from string) []types.NamespacedName {
	return f.users.Users(references.Object{Kind: sharedSource, Name: from})
}
