package source

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/controllers/app/references"
	"github.com/kubeop/kubeop/delivery/fetch/artifact"
	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// Start has Apps woken when their source has answered, and those of a shared source when one of them found that it changed: of a commit, those
// that would read something else there. The other Apps see the change in their next Reconcile.
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

// sharing are the Apps that share a source.
func (f *Fetcher) sharing(from string) []types.NamespacedName {
	return f.users.Users(references.Object{Kind: sharedSource, Name: from})
}
