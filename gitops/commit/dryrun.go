package commit

import "github.com/kubeop/kubeop/delivery/fetch/git"

// DryRun makes the edits of a request on a commit and calls its Check, as Write does, and pushes nothing. It reports whether anything would change.
func DryRun(newest git.Commit, r Request) (changed bool, err error) {
	if r.Base == nil {
		r.Base = newest.Root
	}
	changes, err := changesOf(r, newest.Root)
	return len(changes) > 0, err
}
