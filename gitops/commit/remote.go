package commit

import (
	"context"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/kubeop/kubeop/delivery/fetch/git"
)

// Remote is a branch of a repository at a Git server, read and written with the source's credentials. It implements Branch.
type Remote struct {
	Store  *git.Store
	Source git.Source
}

// Name implements Branch.
func (r Remote) Name() string {
	branch := ""
	if r.Source.Ref != nil {
		branch = r.Source.Ref.Branch
	}
	return r.Source.Auth.Digest(r.Source.URL) + " " + r.Source.Tenant + " " + branch
}

// Branch returns the name of the branch: the one that the source names, or the default one of the server.
func (r Remote) Branch(ctx context.Context) (string, error) {
	if ref := r.Source.Ref; ref != nil && ref.Branch != "" {
		return ref.Branch, nil
	}
	newest, err := r.Fetch(ctx)
	name, _, _ := strings.Cut(newest.Revision, "@")
	return name, err
}

// Fetch implements Branch.
func (r Remote) Fetch(ctx context.Context) (git.Commit, error) { return r.Store.Fetch(ctx, r.Source) }

// Messages implements Branch.
func (r Remote) Messages(ctx context.Context, newest git.Commit, since string, most int) (map[string]string, error) {
	return r.Store.Messages(ctx, r.Source, newest, since, most)
}

// Push implements Branch.
func (r Remote) Push(ctx context.Context, p git.Proposed) ([]string, error) {
	return r.Store.Push(ctx, r.Source, p)
}

// Log returns the newest commits, as git.Store.Log does.
func (r Remote) Log(ctx context.Context, newest git.Commit, most int) (map[string]git.Logged, error) {
	return r.Store.Log(ctx, r.Source, newest, "", most)
}

// At fetches the commit of a hash, which has to be in the branch or in any other.
func (r Remote) At(ctx context.Context, hash string) (git.Commit, error) {
	at := r.Source
	at.Ref = &sourcev1.GitRepositoryRef{Commit: hash}
	if r.Source.Ref != nil {
		at.Ref.Branch = r.Source.Ref.Branch
	}
	return r.Store.Fetch(ctx, at)
}
