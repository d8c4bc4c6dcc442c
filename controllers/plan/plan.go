// Package plan says what a commit will change before it lands: it runs what the operator runs, over connections that write nothing.
package plan

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Commit is a commit to plan.
type Commit struct {
	// Revision names the commit as "REF@sha1:<commit>", and Author is its author's name.
	Revision, Author string
	// Root is its root folder, and Folder returns a folder of it by its Git hash.
	Root   *folder.Folder
	Folder func(hash string) (*folder.Folder, error)
}

// Planner plans commits.
type Planner struct {
	// Client reads kubeop's own kinds, and Direct claims, pods and namespaces. The Planner writes with neither.
	Client, Direct client.Reader
	// Limits are for tenants without limits of their own.
	Limits budget.Limits
	// Kinds returns the kinds that quotas count. Default: those that quotas always count, because few people may read the role of the deployers.
	Kinds func(ctx context.Context) ([]schema.GroupResource, error)
	Clock clock.PassiveClock
	// Connect connects to the cluster to render Apps, whose folders folders returns. It is called only if there are Apps to render.
	Connect func(ctx context.Context, folders Folders) (*Connection, error)
}

// Connection renders Apps and compares them with what is there. Its clients are of a DryRun configuration.
type Connection struct {
	*Renderer
	// Itself: the connection has the rights of the projects' deployers. Otherwise it has those of a person, and objects are compared in this
	// process.
	Itself bool
}

// Plan plans a commit of a Repository. With an App in only, it compares only that one, whether the commit changes it or not.
func (p *Planner) Plan(ctx context.Context, repository *v1alpha1.Repository, commit Commit, only identity.Ref) (*Plan, error) {
	compared, err := p.compare(ctx, repository, commit)
	if err != nil {
		return nil, err
	}
	made := &Plan{Repository: repository.Name, Revision: commit.Revision}
	compared.tree.All(func(problem tree.Problem) bool {
		made.Problems = append(made.Problems, problem.String())
		return true
	})
	if !compared.tree.Usable() {
		return made, nil
	}
	if only.App == "" {
		if made.Frozen, err = p.frozen(ctx, repository); err != nil {
			return nil, err
		}
		made.Changes, made.Held, err = compared.changes(ctx)
	} else {
		_, err = compared.one(only)
	}
	if err != nil {
		return nil, err
	}
	made.Apps, err = p.apps(ctx, compared)
	return made, err
}

// Between compares what an App is rendered to by two commits of a Repository.
func (p *Planner) Between(ctx context.Context, repository *v1alpha1.Repository, from, to Commit, ref identity.Ref) (App, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sides [2]*delivery
	for i, commit := range []Commit{from, to} {
		var err error
		if sides[i], err = p.rendered(ctx, repository, commit, ref); err != nil {
			name, _, _ := strings.Cut(commit.Revision, "@sha1:")
			return App{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	before, after := sides[0], sides[1]
	changes := differences(byID(before.made.Declared()), byID(after.made.Declared()), after.app.Namespace, func(s string) string {
		return before.made.Mask(after.made.Mask(s))
	})
	return App{App: ref.Path(), Source: after.made.Revision, Changes: changes}, nil
}

// rendered renders an App as a commit declares it.
func (p *Planner) rendered(ctx context.Context, repository *v1alpha1.Repository, commit Commit, ref identity.Ref) (*delivery, error) {
	compared, err := p.compare(ctx, repository, commit)
	if err != nil {
		return nil, err
	}
	app, err := compared.one(ref)
	if err != nil {
		return nil, err
	}
	k, err := p.connect(ctx, compared)
	if err != nil {
		return nil, err
	}
	d := &delivery{app: app}
	if err := k.place(ctx, compared, d); err != nil {
		return nil, err
	}
	k.render(ctx, d)
	return d, d.err
}

// cluster renders the Apps of a commit.
type cluster struct {
	*Connection
	direct client.Reader
}

func (p *Planner) connect(ctx context.Context, of *comparison) (*cluster, error) {
	connection, err := p.Connect(ctx, func(a *v1alpha1.App) (*folder.Folder, error) {
		hash, _, _ := strings.Cut(a.Annotations[v1alpha1.TreeAnnotation], tree.DigestSeparator)
		return of.commit.Folder(hash)
	})
	return &cluster{connection, p.Direct}, err
}

// frozen says until when a freeze holds what is pushed to a Repository now; "" without one. A window does not hold the first commit.
func (p *Planner) frozen(ctx context.Context, repository *v1alpha1.Repository) (string, error) {
	if repository.Spec.Tenant == "" {
		return "", nil
	}
	tenant := &v1alpha1.Tenant{}
	if err := p.Client.Get(ctx, client.ObjectKey{Name: repository.Spec.Tenant}, tenant); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading tenant %s: %w", repository.Spec.Tenant, err)
	}
	hold, err := freeze.Of(tenant, p.Clock.Now())
	switch {
	case hold.ByAdministrators():
		return hold.String(), nil
	case repository.Status.LastAttemptedRevision == "":
		return "", nil
	case err != nil:
		return "because " + err.Error(), nil
	case hold == nil:
		return "", nil
	}
	return hold.String(), nil
}

// atOnce is how many Apps are rendered or compared at once.
const atOnce = 4

// apps plans the Apps that the commit creates or changes.
func (p *Planner) apps(ctx context.Context, of *comparison) ([]App, error) {
	if len(of.apps) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := p.connect(ctx, of)
	if err != nil {
		return nil, err
	}
	all := make([]*delivery, len(of.apps))
	each(len(all), func(i int) {
		all[i] = &delivery{app: of.apps[i]}
		if all[i].err = k.place(ctx, of, all[i]); all[i].err == nil {
			k.render(ctx, all[i])
		}
	})
	shareHosts(all)
	others, err := siblingsOf(of, all)
	if err != nil {
		return nil, err
	}
	out := make([]App, len(all))
	each(len(all), func(i int) { out[i] = k.report(ctx, all[i], others) })
	leaveRefused(out)
	return out, nil
}

// leaveRefused corrects the moves of objects that are refused in the app that takes them over: they stay as they are.
func leaveRefused(apps []App) {
	refused := map[string]bool{}
	for _, a := range apps {
		for _, c := range a.Changes {
			refused[a.App+" "+c.Object] = c.Action == Refuse
		}
		refused[a.App] = a.Failed != ""
	}
	for _, a := range apps {
		for i := range a.Changes {
			if c := &a.Changes[i]; c.Action == Move && (refused[c.to] || refused[c.to+" "+c.Object]) {
				c.Action, c.Why = Keep, "app "+c.to+" declares it and cannot take it over"
			}
		}
	}
}

// each calls do with each index, some at once.
func each(n int, do func(int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}
