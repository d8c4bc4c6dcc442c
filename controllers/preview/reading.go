package preview

import (
	"cmp"
	"errors"
	"io/fs"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/preview"
)

// reading is one Read.
type reading struct {
	Request
	Result
	now time.Time
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
		Declared: func(name string) bool { _, there := r.Parents[name]; return there },
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
	problems, err := []string(nil), h.Err
	if err == nil {
		problems, err = r.Read(parent, p, h.Commit)
		if errors.Is(err, fs.ErrNotExist) {
			status.Message = "the branch has no folder " + layout.Join(layout.ProjectsFolder, parent.Name)
			return
		}
	}
	if err != nil {
		status.Message = few.Printable(err.Error())
		r.undecided[p.Project] = true
		return
	}
	status.Revision = h.Commit.Revision
	if len(problems) > 0 {
		status.Message = first(problems)
	}
}

// keepAll keeps all previews of a project.
func (r *reading) keepAll(parent string, failed error) {
	r.undecidedOf[parent] = true
	if failed != nil {
		r.Status = append(r.Status, v1alpha1.PreviewStatus{PreviewOf: parent, Message: few.Printable(failed.Error())})
	}
}
