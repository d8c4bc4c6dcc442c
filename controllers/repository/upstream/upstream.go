// Package upstream says what a Repository follows: its URL and ref, the folder that is read, and the Secrets that it names. Pure.
package upstream

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Source names the URL and the ref of a repository.
func Source(repository *v1alpha1.Repository) string {
	ref := repository.Spec.Ref
	if ref == nil {
		return repository.Spec.URL
	}
	source := repository.Spec.URL
	for _, part := range []struct{ name, value string }{
		{"commit", ref.Commit}, {"name", ref.Name}, {"semver", ref.SemVer}, {"tag", ref.Tag}, {"branch", ref.Branch},
	} {
		if part.value != "" {
			source += " " + part.name + "=" + part.value
		}
	}
	return source
}

// Place returns the URL and path of a repository's files, for status.appliedSource.
func Place(repository *v1alpha1.Repository) string {
	return strings.TrimSuffix(repository.Spec.URL, "/") + "#" + repository.Spec.Path
}

// Folder returns spec.path in the form of fs.FS.
func Folder(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// BySemver reports whether a semver range selects the commit: tags of different versions need not descend from each other.
func BySemver(repository *v1alpha1.Repository) bool {
	ref := repository.Spec.Ref
	return ref != nil && ref.SemVer != "" && ref.Commit == "" && ref.Name == ""
}

// Compared reports whether new commits are compared with the last accepted one: there is one, it has the same URL and ref, and the spec
// does not allow any history. A status without a source counts as the same source.
func Compared(repository *v1alpha1.Repository) bool {
	status := &repository.Status
	return repository.Spec.History != v1alpha1.HistoryAny && v1alpha1.CommitOf(status.LastAttemptedRevision) != "" &&
		(status.Source == "" || status.Source == Source(repository))
}

// Narrowed returns the ref narrowed to one commit.
func Narrowed(ref *sourcev1.GitRepositoryRef, commit string) *sourcev1.GitRepositoryRef {
	to := &sourcev1.GitRepositoryRef{Commit: commit}
	if ref != nil {
		to.Branch = ref.Branch
	}
	return to
}

// Secrets returns the names of the Secrets that a repository names.
func Secrets(repository *v1alpha1.Repository) []string {
	refs := []*v1alpha1.LocalSecretReference{repository.Spec.SecretRef, repository.Spec.HookSecretRef}
	if repository.Spec.Verify != nil {
		refs = append(refs, &repository.Spec.Verify.SecretRef)
	}
	if repository.Spec.CommitStatus != nil {
		refs = append(refs, repository.Spec.CommitStatus.SecretRef)
	}
	var names []string
	for _, ref := range refs {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	return names
}
