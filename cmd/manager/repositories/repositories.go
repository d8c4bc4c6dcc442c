// Package repositories writes the changes of the management API to the repositories that declare tenants, projects and apps.
package repositories

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/draft"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/keymutex"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/commit"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/writes"
)

// Repositories implements writes.Repositories. Safe for concurrent use.
type Repositories struct {
	// Objects has the Repositories, tenants, projects and apps of the cluster, from caches.
	Objects client.Reader
	// Secrets reads the Secrets with credentials, in Namespace.
	Secrets   client.Reader
	Namespace string
	Git       *git.Store

	commits commit.Writer
	// reader is made when it is needed first, because it compiles the rules of all kinds.
	reader func() (*tree.Reader, error)

	clock  clock.PassiveClock
	asking keymutex.Mutexes
	cache  cache
}

// New returns Repositories.
func New(objects, secrets client.Reader, namespace string, store *git.Store) *Repositories {
	return &Repositories{
		Objects: objects, Secrets: secrets, Namespace: namespace, Git: store, commits: commit.Writer{Clock: clock.RealClock{}}, reader: sync.OnceValues(newReader),
		clock: clock.RealClock{}, cache: newCache(),
	}
}

func newReader() (*tree.Reader, error) {
	reader, err := tree.NewReader()
	if err != nil {
		return nil, err
	}
	// A chart setting decides whether the operator delivers apps of the platform; a repository that has some is checked as one that may.
	reader.Platform = true
	return reader, nil
}

// find returns where an object is declared: a tenant in the platform repository, and what a tenant has in its own one. A tenant without a repository of its own is declared as
// a whole in the platform's.
func (r *Repositories) find(ctx context.Context, of writes.Object) (*place, error) {
	p := &place{ref: identity.Ref{Tenant: of.Tenant, Project: of.Project, App: of.App}, repository: &v1alpha1.Repository{}}
	name := of.Tenant
	if of.Project == "" {
		name = v1alpha1.PlatformRepository
	}
	err := r.Objects.Get(ctx, client.ObjectKey{Name: name}, p.repository)
	if apierrors.IsNotFound(err) && name != v1alpha1.PlatformRepository {
		err = r.Objects.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformRepository}, p.repository)
	}
	if apierrors.IsNotFound(err) {
		return nil, problem.New(problem.Conflict, "The cluster has no Repository platform, so there is nothing to write to.")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the repository of %s: %w", of.Path(), err)
	}
	p.file = p.ref.File(p.ofPlatform())
	return p, nil
}

// open finds where an object is declared, for a caller who may write there, and how to reach it.
func (r *Repositories) open(ctx context.Context, of writes.Object, ofPlatform bool) (*place, error) {
	p, err := r.find(ctx, of)
	if err != nil {
		return nil, err
	}
	if p.ofPlatform() && !ofPlatform {
		return nil, problem.New(problem.Forbidden, "The tenant has no repository of its own, and only administrators change that of the platform.")
	}
	spec := p.repository.Spec
	if ref := spec.Ref; ref != nil && (ref.Tag != "" || ref.SemVer != "" || ref.Commit != "" || ref.Name != "") {
		return nil, problem.New(problem.Conflict, "The repository follows no branch, so there is nothing to commit to: name one in its spec.ref.branch.")
	}
	if spec.Verify != nil {
		return nil, problem.New(problem.Conflict, "The repository accepts signed commits only (spec.verify), and those of the manager have no signature: push a signed commit.")
	}
	if !p.ofPlatform() {
		tenant := &v1alpha1.Tenant{}
		if err := r.Objects.Get(ctx, client.ObjectKey{Name: spec.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the limits of tenant %s: %w", spec.Tenant, err)
		}
		clusters := &v1alpha1.ClusterList{}
		if err := r.Objects.List(ctx, clusters); err != nil {
			return nil, fmt.Errorf("listing the clusters: %w", err)
		}
		p.limits, p.placement = tenant.Spec.Limits, tree.Placement{Rules: declared.Clusters(clusters.Items), Tenant: tenant.Spec.Clusters}
	}
	auth, err := transport.ReadAuth(ctx, r.Secrets, r.Namespace, spec.SecretRef)
	if err != nil {
		return nil, unreachable(ctx, err, "The manager cannot read the Git credentials of the repository: an administrator lists their Secret in manager.git.secrets of the chart's values.")
	}
	p.remote = commit.Remote{Store: r.Git, Source: git.Source{URL: spec.URL, Ref: spec.Ref.DeepCopy(), Auth: auth, Tenant: budget.OfRepository(p.repository.Name)}}
	return p, nil
}

// committer makes the commits that callers request.
var committer = draft.Person{Name: "kubeop-manager", Email: "kubeop-manager@" + v1alpha1.GroupVersion.Group}

// titles begin the messages of commits.
var titles = map[string]string{writes.Create: "Create", writes.Replace: "Change", writes.Patch: "Change", writes.Delete: "Delete"}

// Write implements writes.Repositories.
func (r *Repositories) Write(ctx context.Context, c writes.Change) (writes.Written, error) {
	p, err := r.open(ctx, c.Of, c.OfPlatform)
	if err != nil {
		return writes.Written{}, err
	}
	request, err := r.request(ctx, p, c)
	if err != nil {
		return writes.Written{}, err
	}
	if c.DryRun {
		return r.dryRun(ctx, p, c, request)
	}
	if request.Branch, err = p.remote.Branch(ctx); err != nil {
		return writes.Written{}, p.failed(ctx, err, nil)
	}
	written := func(done commit.Result) writes.Written {
		return writes.Written{Commit: done.Hash, Changed: !done.Unchanged, Repository: p.repository.Name, File: p.path()}
	}
	if c.Alone != nil {
		request.Alone = func(done commit.Result) { c.Alone(written(done)) }
	}
	done, err := r.commits.Write(ctx, p.remote, request)
	if err == nil {
		r.cache.addCommit(p.repository.Name, done.Hash)
	}
	if err == nil && done.Unchanged && c.How == writes.Delete {
		err = commit.ErrMissing
	}
	if err != nil {
		return writes.Written{}, p.failed(ctx, err, request.Edits)
	}
	return written(done), nil
}

// request returns the commit to make.
func (r *Repositories) request(ctx context.Context, p *place, c writes.Change) (commit.Request, error) {
	request := commit.Request{
		ID: c.ID, Title: titles[c.How] + " " + p.name(), Author: draft.Person(c.Author), Committer: committer, Folder: p.folder(),
		Check: func(before, after *folder.Folder) error {
			if err := r.check(p, before, after); err != nil || c.Allowed == nil {
				return err
			}
			return c.Allowed()
		},
	}
	if c.How == writes.Rollback {
		return request, r.restore(ctx, p, c.To, &request)
	}
	var err error
	request.Edits, err = p.edits(c)
	return request, err
}

// File implements writes.Repositories.
func (r *Repositories) File(ctx context.Context, of writes.Object, ofPlatform bool) (writes.File, error) {
	p, err := r.open(ctx, of, ofPlatform)
	if err != nil {
		return writes.File{}, err
	}
	newest, err := p.remote.Fetch(ctx)
	if err != nil {
		return writes.File{}, p.failed(ctx, err, nil)
	}
	if info, err := newest.Root.Stat(p.path()); err == nil && !info.Mode().IsRegular() {
		return writes.File{}, problem.New(problem.Conflict, p.path()+" is no file, but a folder, a link or a submodule. Only a commit by hand can change that.")
	}
	text, err := newest.Root.ReadFile(p.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writes.File{}, p.failed(ctx, commit.ErrMissing, nil)
	case errors.Is(err, failure.ErrTooLarge), errors.Is(err, folder.ErrSymlink), errors.Is(err, folder.ErrSubmodule):
		return writes.File{}, problem.New(problem.Conflict, p.path()+" cannot be read: it is too large, or below a link or a submodule. Only a commit by hand can change that.")
	}
	digest, noDigest := newest.Root.Digest(p.path())
	around, noFolder := newest.Root.Digest(path.Dir(p.path()))
	if err := errors.Join(err, noDigest, noFolder); err != nil {
		return writes.File{}, fmt.Errorf("reading %s: %w", p.path(), err)
	}
	return writes.File{Repository: p.repository.Name, Path: p.path(), Commit: newest.Hash, Text: string(text), ETag: etagOf(digest, around)}, nil
}
