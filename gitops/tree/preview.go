package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/preview"
)

// share is the part of the tenant's limit of files that one preview may have, as 1/share.
const share = 4

// PreviewOf is what a branch declares as the preview of a project.
func PreviewOf(parent *v1alpha1.Project, name string, from Origin) Preview {
	host := parent.Spec.Previews.Host
	adapt := func(app *v1alpha1.App) { preview.Adapt(app, parent.Name, name, host) }
	return Preview{Project: preview.Object(parent, name), Origin: from, Adapt: adapt, Settings: host}
}

// ReadPreview reads the project's folder in the files of the branch. before may have the preview, of an earlier commit of the branch.
// project.yaml of the branch is not read. Every problem names the branch, and none is about another project. The error is one of the store:
// reading again may help.
func (r *Reader) ReadPreview(files Files, scope Scope, v Preview, before *Tree) (*Project, error) {
	if before == nil || before.Scope != scope {
		before = &Tree{}
	}
	p := &pass{kinds: r.kinds, limits: r.Limits, root: files, files: files, scope: scope, preview: &v, accepted: before.accepted}
	p.limits.TreeBytes /= share
	tenant := &Tenant{node: node{ref: identity.Ref{Tenant: scope.Tenant}}, implicit: true}
	p.budget = p.budgetOf(tenant)
	n := node{ref: identity.Ref{Tenant: scope.Tenant, Project: v.Project.Name}, dir: layout.Join(layout.ProjectsFolder, v.Of), origin: &v.Origin}
	digest, err := files.Digest(n.dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", n.dir, err)
	}
	last := find(before.ProjectsOf(scope.Tenant), v.Project.Name)
	if last != nil && last.origin == nil {
		last = nil
	}
	if err := n.declare(v.Project); err != nil {
		return nil, err
	}
	n.digest = digest + p.preview.suffix()
	if last != nil && last.digest == n.digest && last.file == n.file && before.Limits == r.Limits {
		return last, nil
	}
	project := &Project{node: n}
	p.readParts(project, last)
	tenant.Projects = []*Project{project}
	p.refuseCycles(tenant)
	project = tenant.Projects[0]
	project.count()
	for _, problem := range project.AllProblems() {
		if problem.Err != nil {
			return nil, problem.Err
		}
	}
	return project, nil
}

// declare sets the object of a preview's node.
func (n *node) declare(project *v1alpha1.Project) error {
	text, err := json.Marshal(project)
	if err != nil {
		return fmt.Errorf("writing project %s: %w", project.Name, err)
	}
	sum := sha256.Sum256(text)
	n.object, n.file, n.size = text, hex.EncodeToString(sum[:20]), int64(len(text))
	return nil
}

// readParts reads the apps of a preview, and reports other YAML files as those of any project.
func (p *pass) readParts(project, before *Project) {
	entries, err := p.list(project.dir)
	if err != nil {
		project.Unknown = true
		project.Strays = p.problems(project.ref, readFailure(project.dir, err))
		return
	}
	project.Strays = p.problems(identity.Ref{}, entries.strays(layout.ProjectFile)...)
	_, project.Unknown = entries.unusable[layout.AppsFolder]
	for _, e := range entries.Entries {
		file := layout.Join(project.dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == layout.AppsFolder:
			p.readApps(project, before, file)
		case !e.IsDir() && e.Name() == layout.ProjectFile:
		default:
			project.Strays = append(project.Strays, p.stray(e, file)...)
		}
	}
}

// Parents returns the projects that the commit has, without previews, by name. The value is nil for one whose project.yaml is not valid.
func (t *Tree) Parents() map[string]*v1alpha1.Project {
	all := map[string]*v1alpha1.Project{}
	for _, tenant := range t.Tenants {
		for _, project := range tenant.Projects {
			switch {
			case project.origin != nil:
			case project.Declared():
				all[project.ref.Project] = decode(&project.node, &v1alpha1.Project{})
			default:
				all[project.ref.Project] = nil
			}
		}
	}
	return all
}

// ProblemsOf says what is wrong with a preview of a project: with the files of its branch, and with its hosts. t is a tree of the same repository.
func (t *Tree) ProblemsOf(parent *v1alpha1.Project, project *Project) (all []string) {
	for _, problem := range project.AllProblems() {
		all = append(all, problem.String())
	}
	var apps []*v1alpha1.App
	for _, app := range project.Apps {
		if app.Declared() {
			apps = append(apps, t.Object(app, "").(*v1alpha1.App))
		}
	}
	if shared := preview.SharedHost(parent.Spec.Previews.Host, apps); shared != "" {
		all = append(all, shared)
	}
	return all
}

// Kept returns the previews of an earlier tree of the same repository that stay; before may be nil.
func (t *Tree) Kept(before *Tree, stays func(of, name string) bool) []*Project {
	if before == nil || before.Scope != t.Scope {
		return nil
	}
	return slices.DeleteFunc(before.Previews(), func(p *Project) bool { return !stays(p.origin.Of, p.ref.Project) })
}
