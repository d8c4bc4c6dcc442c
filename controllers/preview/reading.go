package preview

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/preview"
	"github.com/kubeop/kubeop/gitops/tree"
)

// share is the part of the tenant's limit of files that one preview may have, as 1/share.
const share = 4

// reading is one Read.
type reading struct {
	Request
	Result
	now     time.Time
	parents map[string]*v1alpha1.Project
	// running are the names of the previews that run, and branches their branches.
	running, branches map[string]bool
	// failed is why the branches could not be listed. fetched: they are those of this commit.
	failed  error
	fetched bool
	pulls   pulls
}

// decide decides about the previews of one project.
func (r *reading) decide(parent *v1alpha1.Project, heads []head) {
	byName := map[string]head{}
	var found []preview.Branch
	for _, h := range heads {
		byName[h.Branch] = h
		found = append(found, h.candidate())
	}
	ofPulls := parent.Spec.Previews.PullRequests
	if ofPulls {
		found = r.pulls.candidates(byName, r.fetched)
	}
	if ofPulls && r.pulls.failed != nil {
		r.Status = append(r.Status, v1alpha1.PreviewStatus{PreviewOf: parent.Name, Message: few.Printable(r.pulls.failed.Error())})
	}
	limits := preview.Limits{
		Project: parent.Name, Spec: parent.Spec.Previews, Main: r.Commit.Hash, Follows: r.follows(), Now: r.now,
		Declared: func(name string) bool { _, there := r.parents[name]; return there },
		Running:  func(name string) bool { return r.running[name] },
	}
	for _, p := range limits.Choose(found) {
		status := v1alpha1.PreviewStatus{Project: p.Project, PreviewOf: parent.Name, Branch: few.Printable(p.Name), PullRequest: p.PullRequest, Message: few.Printable(p.Missing)}
		if p.Missing == "" {
			r.read(parent, p, byName[p.Name], &status)
		}
		if r.failed != nil {
			status.Message = cmp.Or(status.Message, "the branch may be older than at the Git host: "+few.Printable(r.failed.Error()))
		}
		r.Status = append(r.Status, status)
	}
}

// read reads the preview of one branch. If that fails, the preview stays as it was.
func (r *reading) read(parent *v1alpha1.Project, p preview.Preview, h head, status *v1alpha1.PreviewStatus) {
	project, err := r.readProject(parent, p, h)
	if gone := missingFolder(err, parent.Name); gone != "" && h.Err == nil {
		status.Message = gone
		return
	}
	if err != nil {
		status.Message = few.Printable(err.Error())
		r.keep(p.Project)
		return
	}
	r.Projects = append(r.Projects, project)
	status.Revision = h.Commit.Revision
	if problems := Problems(r.Tree, parent, project); len(problems) > 0 {
		status.Message = first(problems)
	}
}

// Problems says what is wrong with a preview: with the files of its branch, and with its hosts. of is a tree of the same repository.
func Problems(of *tree.Tree, parent *v1alpha1.Project, project *tree.Project) (all []string) {
	for _, problem := range project.PreviewProblems() {
		all = append(all, problem.String())
	}
	var apps []*v1alpha1.App
	for _, app := range project.Apps {
		if app.Declared() {
			apps = append(apps, of.Object(app, "").(*v1alpha1.App))
		}
	}
	if shared := preview.SharedHost(parent.Spec.Previews.Host, apps); shared != "" {
		all = append(all, shared)
	}
	return all
}

func (r *reading) readProject(parent *v1alpha1.Project, p preview.Preview, h head) (*tree.Project, error) {
	if h.Err != nil {
		return nil, h.Err
	}
	path := cmp.Or(r.Repository.Spec.Path, ".")
	root, err := h.Commit.Root.Sub(path)
	if err != nil {
		return nil, fmt.Errorf("spec.path: %w", err)
	}
	from := tree.Origin{Of: parent.Name, Branch: p.Name, Revision: h.Commit.Revision, Author: h.Commit.Author}
	return r.Reader.ReadPreview(Files{root}, r.Tree.Scope, Declared(parent, p.Project, from), r.Before)
}

// Declared is what a branch declares as the preview of a project.
func Declared(parent *v1alpha1.Project, name string, from tree.Origin) tree.Preview {
	host := parent.Spec.Previews.Host
	return tree.Preview{
		Project: preview.Object(parent, name), Settings: host, Share: share, Origin: from,
		Adapt: func(app *v1alpha1.App) { preview.Adapt(app, parent.Name, name, host) },
	}
}

// keep keeps a preview as it was read last or, after a restart, as it is in the cluster.
func (r *reading) keep(name string) {
	r.undecided[name] = true
	r.keepIf(func(p *tree.Project) bool { return p.Ref().Project == name })
}

// keepAll keeps all previews of a project.
func (r *reading) keepAll(parent string, failed error) {
	r.undecidedOf[parent] = true
	r.keepIf(func(p *tree.Project) bool { return p.Origin().Of == parent })
	if failed != nil {
		r.Status = append(r.Status, v1alpha1.PreviewStatus{PreviewOf: parent, Message: few.Printable(failed.Error())})
	}
}

func (r *reading) keepIf(wanted func(*tree.Project) bool) {
	if r.Before == nil || r.Before.Scope != r.Tree.Scope {
		return
	}
	for _, p := range r.Before.Previews() {
		if _, declared := r.parents[p.Ref().Project]; !declared && wanted(p) {
			r.Projects = append(r.Projects, p)
		}
	}
}

// missingFolder says that a branch does not have the project.
func missingFolder(err error, project string) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the branch has no folder " + layout.Join(layout.ProjectsFolder, project)
	}
	return ""
}
