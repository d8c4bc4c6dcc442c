package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// repositories are the repositories of a run.
type repositories struct {
	stage    *stage.Stage
	platform *stage.Repository
	// own is a clone with a branch for each changed tenant's repository. Its main is their common first commit. It is nil if the projects are
	// in the platform repository.
	own     *stage.Repository
	changed map[int]bool
}

// The Secrets that all tenants' repositories share.
const (
	ownGit  = "tenants-git"
	ownHook = "tenants-hook"
)

// newRepositories creates the repositories and their credentials. It does not push to the platform repository yet.
func newRepositories(ctx context.Context, s *stage.Stage, r *run) (*repositories, error) {
	x := &repositories{stage: s, changed: map[int]bool{}}
	key := rand.Text()
	var err error
	if x.platform, err = s.CreateRepository(ctx, v1alpha1.PlatformRepository, key); err != nil {
		return nil, err
	}
	if err := x.credentials(ctx, x.platform, "platform-git", "platform-hook", key); err != nil {
		return nil, err
	}
	if r.layout == tenantLayout {
		if err := x.makeOwn(ctx, r.Tenants); err != nil {
			return nil, err
		}
	}
	return x, x.platform.Import(ctx, x.beginning(r))
}

func (x *repositories) credentials(ctx context.Context, of *stage.Repository, git, hook, key string) error {
	if err := x.stage.SetSecret(ctx, git, map[string]string{"username": of.User, "password": of.Password}); err != nil {
		return err
	}
	return x.stage.SetSecret(ctx, hook, map[string]string{"token": key})
}

func (x *repositories) makeOwn(ctx context.Context, tenants int) (err error) {
	if x.own, err = x.stage.CreateRepository(ctx, "tenants", ""); err != nil {
		return err
	}
	c := &commits{}
	c.Commit("main", "", "Begin")
	c.File("kubeop.yaml", layoutVersion)
	c.projects("")
	if err := x.own.Import(ctx, c.Done()); err != nil {
		return err
	}
	key := rand.Text()
	if err := x.credentials(ctx, x.own, ownGit, ownHook, key); err != nil {
		return err
	}
	var names []string
	for n := range tenants {
		names = append(names, tenantName(n))
	}
	return x.stage.CreateCopies(ctx, x.own, key, names...)
}

// beginning returns the platform repository's first commit.
func (x *repositories) beginning(r *run) *stage.Commits {
	c := &commits{}
	c.Commit("main", "", "Begin")
	c.File("kubeop.yaml", layoutVersion)
	for n := range r.Tenants {
		if x.own != nil {
			c.tenant(tenantName(n), binding(x.urlOf(n)))
			continue
		}
		c.tenant(tenantName(n), nil)
		c.projects(path.Join("tenants", tenantName(n)))
	}
	for n := 0; n < r.Suspended; n += suspendedOfTenant {
		c.suspended(fmt.Sprintf("u%04d", n/suspendedOfTenant), min(suspendedOfTenant, r.Suspended-n))
	}
	for n, url := range r.unreachable {
		c.tenant(fmt.Sprintf("u%04d", n), binding(url))
	}
	return c.Done()
}

func (x *repositories) urlOf(tenant int) string {
	return x.stage.GitURL() + "/" + tenantName(tenant) + ".git"
}

func binding(url string) map[string]any {
	return map[string]any{"url": url, "secretRef": map[string]any{"name": ownGit}, "hookSecretRef": map[string]any{"name": ownHook}}
}

// pushAll pushes the first commit of the platform repository.
func (x *repositories) pushAll(ctx context.Context) error {
	return x.platform.PushRef(ctx, "refs/heads/main", x.platform.URL)
}

// change commits another turn of an app, and returns a function that pushes it.
func (x *repositories) change(ctx context.Context, a appID, turn int) (func() error, error) {
	c, message := &commits{}, fmt.Sprintf("Turn %d of %s", turn, a.key())
	if x.own == nil {
		c.Commit("main", "refs/heads/main^0", message)
		c.File(path.Join("tenants", tenantName(a.tenant), a.folder(), manifestFile), a.manifest(turn))
		return func() error { return x.pushAll(ctx) }, x.platform.Import(ctx, c.Done())
	}
	branch, from := tenantName(a.tenant), "refs/heads/main^0"
	if x.changed[a.tenant] {
		from = "refs/heads/" + branch + "^0"
	}
	x.changed[a.tenant] = true
	c.Commit(branch, from, message)
	c.File(path.Join(a.folder(), manifestFile), a.manifest(turn))
	return func() error {
		return x.own.PushRef(ctx, "refs/heads/"+branch, x.stage.Cluster.Git.Host+"/"+branch+".git")
	}, x.own.Import(ctx, c.Done())
}
