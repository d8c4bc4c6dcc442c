package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fieldmanager"
	"github.com/kubeop/kubeop/gitops/files"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
)

// Preview is the project that a branch or a pull request would have.
type Preview struct {
	Project string `json:"project"`
	// Of is the project that it is a preview of.
	Of string `json:"of"`
	// Missing is why there is none.
	Missing string       `json:"missing,omitempty"`
	Apps    []PreviewApp `json:"apps,omitempty"`
}

// PreviewApp is an app of a preview.
type PreviewApp struct {
	Name  string   `json:"name"`
	Hosts []string `json:"hosts,omitempty"`
}

// String describes a preview in a line.
func (p *Preview) String() string {
	if p.Missing != "" {
		return fmt.Sprintf("%s, a preview of %s: there is none, because %s", p.Project, p.Of, p.Missing)
	}
	apps := make([]string, len(p.Apps))
	for i, app := range p.Apps {
		apps[i] = app.Name
		if len(app.Hosts) > 0 {
			apps[i] += " at " + strings.Join(app.Hosts, " and ")
		}
	}
	return fmt.Sprintf("%s, a preview of %s, with the apps: %s", p.Project, p.Of, strings.Join(apps, ", "))
}

// PlanPreview plans the previews that a commit would have if it were pushed now to a branch or, if branch is a number, to the branch of that
// pull request. What the Projects in the cluster say about previews counts.
func (p *Planner) PlanPreview(ctx context.Context, repository *v1alpha1.Repository, commit Commit, branch string) (*Plan, error) {
	if repository.Spec.Tenant == "" {
		return nil, errors.New("only a tenant's own repository has previews")
	}
	c, err := p.compare(ctx, repository, commit)
	if err != nil {
		return nil, err
	}
	made, err := p.previews(ctx, c, branch)
	if err == nil && c.previews {
		made.Apps, err = p.apps(ctx, c)
	}
	return made, err
}

// previews plans the previews without the objects of their apps.
func (p *Planner) previews(ctx context.Context, c *comparison, of string) (*Plan, error) {
	made := &Plan{Repository: c.repository.Name, Revision: c.commit.Revision}
	if !c.tree.Usable() {
		c.tree.All(func(problem tree.Problem) bool {
			made.Problems = append(made.Problems, problem.String())
			return true
		})
		return made, nil
	}
	projects, err := p.readPreviews(c, of, made)
	if err != nil {
		return nil, err
	}
	if len(made.Previews) == 0 {
		return nil, fmt.Errorf("%s has no preview: spec.previews of no project of repository %s matches it", of, c.repository.Name)
	}
	c.narrow(projects)
	for i := range made.Previews {
		made.Previews[i].Apps = c.appsOf(made.Previews[i].Project)
	}
	made.Changes, made.Held, err = c.changes(ctx)
	// The Project in the cluster has the defaults of the project that it is of, so its text differs.
	made.Changes = slices.DeleteFunc(made.Changes, func(ch Change) bool {
		return ch.Action == Update && len(ch.Fields) == 0 && strings.HasPrefix(ch.Object, v1alpha1.ProjectKind+" ")
	})
	return made, err
}

// readPreviews reads the preview of each project that has one, and adds what is known of each to the plan.
func (p *Planner) readPreviews(c *comparison, of string, made *Plan) (projects []*tree.Project, err error) {
	for _, parent := range c.parents() {
		chosen, matches := p.choose(c, parent, of)
		if !matches {
			continue
		}
		made.Previews = append(made.Previews, Preview{Project: chosen.Project, Of: parent.Name, Missing: chosen.Missing})
		if chosen.Missing != "" {
			continue
		}
		project, err := c.readPreview(parent, chosen)
		if err != nil {
			return nil, err
		}
		projects = append(projects, project)
		made.Problems = append(made.Problems, c.tree.ProblemsOf(parent, project)...)
	}
	return projects, nil
}

// parents returns the live projects that have previews.
func (c *comparison) parents() (all []*v1alpha1.Project) {
	for _, ref := range slices.SortedFunc(maps.Keys(c.there), func(a, b identity.Ref) int { return strings.Compare(a.Path(), b.Path()) }) {
		if project, ok := c.there[ref].(*v1alpha1.Project); ok && project.Spec.Previews != nil {
			all = append(all, project)
		}
	}
	return all
}

// choose decides whether the commit has a preview of a project, beside those that run. matches: the project has previews of such branches.
func (p *Planner) choose(c *comparison, parent *v1alpha1.Project, of string) (chosen preview.Preview, matches bool) {
	main := c.repository.Status.LastAttemptedRevision
	hash := v1alpha1.CommitOf(main)
	own := v1alpha1.CommitOf(c.commit.Revision)
	running := c.running(parent.Name)
	pushed, name := preview.Branch{Name: of, Hash: own, Time: p.Clock.Now()}, preview.Name(parent.Name, of)
	if parent.Spec.Previews.PullRequests {
		number, err := strconv.ParseInt(of, 10, 32)
		if err != nil {
			return chosen, false // It is the name of a branch.
		}
		pushed.PullRequest, name = number, preview.Number(parent.Name, number)
		pushed.Name = cmp.Or(running[name], of)
	}
	candidates := []preview.Branch{pushed}
	for other, branch := range running {
		if other != name {
			candidates = append(candidates, preview.Branch{Name: branch, Hash: "of " + other, PullRequest: preview.NumberOf(parent.Name, other), Time: p.Clock.Now()})
		}
	}
	limits := preview.Limits{
		Project: parent.Name, Spec: parent.Spec.Previews, Main: hash, Follows: preview.Followed(c.repository, main), Now: p.Clock.Now(),
		Declared: func(name string) bool {
			return c.there[identity.Ref{Tenant: c.repository.Spec.Tenant, Project: name}] != nil
		},
		Running: func(name string) bool { return running[name] != "" },
	}
	all := limits.Choose(candidates)
	at := slices.IndexFunc(all, func(p preview.Preview) bool { return p.Project == name })
	if at < 0 {
		return chosen, false
	}
	return all[at], true
}

// running returns the branches of the previews of a project that run, by their projects.
func (c *comparison) running(parent string) map[string]string {
	running := map[string]string{}
	for _, o := range c.listed {
		if _, ok := o.(*v1alpha1.Project); ok && o.GetAnnotations()[v1alpha1.PreviewOfAnnotation] == parent {
			running[o.GetName()] = o.GetAnnotations()[v1alpha1.BranchAnnotation]
		}
	}
	return running
}

// readPreview reads the files of the commit as a preview.
func (c *comparison) readPreview(parent *v1alpha1.Project, chosen preview.Preview) (*tree.Project, error) {
	root, err := c.commit.Root.Sub(path.Join(".", c.repository.Spec.Path))
	if err != nil {
		return nil, fmt.Errorf("reading %s of the commit: %w", c.repository.Spec.Path, err)
	}
	from := tree.Origin{Of: parent.Name, Branch: chosen.Name, Revision: c.commit.Revision, Author: c.commit.Author}
	return c.reader.ReadPreview(files.Of(root), c.tree.Scope, tree.PreviewOf(parent, chosen.Project, from), nil)
}

// narrow leaves only what belongs to these previews.
func (c *comparison) narrow(projects []*tree.Project) {
	c.previews, c.tree, c.there = true, c.tree.With(projects), map[identity.Ref]client.Object{}
	for _, o := range c.listed {
		ref, _ := identity.Of(o)
		chosen := slices.ContainsFunc(projects, func(p *tree.Project) bool { return p.Ref().Project == ref.Project })
		if chosen && o.GetDeletionTimestamp() == nil && fieldmanager.Applied(o) {
			c.there[ref] = o
		}
	}
}

// appsOf returns the apps of a preview.
func (c *comparison) appsOf(project string) (apps []PreviewApp) {
	c.tree.Walk(func(n tree.Node) bool {
		if ref := n.Ref(); ref.Project != project || ref.App == "" || !n.Declared() {
			return true
		}
		if app, ok := c.tree.Object(n, c.commit.Revision).(*v1alpha1.App); ok {
			shown := PreviewApp{Name: app.Name}
			if app.Spec.Host != "" {
				shown.Hosts = []string{app.Spec.Host}
			}
			for _, host := range app.Spec.Hosts {
				shown.Hosts = append(shown.Hosts, host.Host)
			}
			apps = append(apps, shown)
		}
		return true
	})
	return apps
}
