package tree

import (
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/gitops/allowance"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// readLayout reads kubeop.yaml. If the layout is not known, nothing else is read.
func (p *pass) readLayout(root listing, before *node) node {
	n := node{dir: "."}
	e, there := root.File(layout.VersionFile)
	if !there {
		n.problems = p.problems(identity.Ref{}, document.Finding{File: layout.VersionFile, Code: code.NoLayout,
			Why: fmt.Sprintf("there is no %s; create it with the line \"layout: %s\"", layout.VersionFile, layout.Version)})
		return n
	}
	var err error
	if n.file, err = p.digest(layout.VersionFile, e); err == nil && n.file == before.file && !anyIncomplete(before.problems) {
		return *before
	}
	n.problems = p.problems(identity.Ref{}, check.Version(p.read(layout.VersionFile)).Findings...)
	return n
}

// readOrReuse reads a folder, or returns its node of the earlier tree if the folder is unchanged, could be read completely, and still fits
// into the budget.
func readOrReuse[N named](p *pass, n node, e fs.DirEntry, before N, read func(n node, before N) N) N {
	var none N
	var err error
	if n.digest, err = p.digest(n.dir, e); err == nil && before != none && before.self().digest == n.digest && !before.incomplete() && p.budget.Reuse(before.self().spent, before.self().over) {
		return before
	}
	since := p.budget.Now()
	now := read(n, before)
	if p.budget != nil {
		now.self().spent, now.self().over = p.budget.Since(since)
	}
	return now
}

// readFile reads the file that declares a Tenant or a Project. If the file is unchanged, the result comes from the earlier node. readFile
// returns the name of the file; "" for none. A file with a similar name, such as tenant.yml, is reported and not read.
func (p *pass) readFile(n *node, l listing, want string, before *node) string {
	name := l.Nearest(want)
	if name == "" {
		return ""
	}
	file := layout.Join(n.dir, name)
	if name != want {
		misnamed := p.misplaced(file)
		misnamed.Code = code.MisnamedFile
		n.problems = p.problems(n.ref, misnamed)
		return name
	}
	e, _ := l.File(name)
	digest, err := p.digest(file, e)
	if err != nil {
		n.problems = p.problems(n.ref, readFailure(file, err))
		return name
	}
	n.file = digest
	if over := p.tooLarge(n, file, e, before); over != nil {
		n.problems = p.problems(n.ref, over...)
		return name
	}
	if before.file == digest && !anyIncomplete(before.problems) && (before.object != nil || !before.over) {
		n.object, n.problems, n.size, n.field = before.object, before.problems, before.size, before.field
		p.budget.Spend(n.takes())
		return name
	}
	n.take(p, p.checkFile(file, n))
	return name
}

// take copies the result of a check into the node.
func (n *node) take(p *pass, d *check.Result) {
	if n.problems = p.problems(n.ref, d.Findings...); len(n.problems) > 0 {
		return
	}
	text, err := json.Marshal(d.Object)
	if err != nil {
		n.problems = p.problems(n.ref, document.Finding{File: d.File, Code: code.InvalidValue, Why: err.Error()})
		return
	}
	if !p.keep(n, d, text) {
		return
	}
	n.object = text
	switch ref := n.ref; {
	case ref.Registry != "":
		n.field = d.Position("spec.secretRef")
	case ref.Project != "" && ref.App == "":
		n.field = d.Position("spec.cluster")
	case ref.Tenant != "" && ref.Project == "":
		n.field = d.Position("spec.budget")
	}
}

// bindOnce refuses a tenant that has projects both here and in its own repository.
func (p *pass) bindOnce(t *Tenant, l listing) {
	if !l.Folder(layout.ProjectsFolder) || t.object == nil {
		return
	}
	tenant := decode(&t.node, &v1alpha1.Tenant{})
	if tenant.Spec.Repository == nil {
		return
	}
	file := layout.Join(t.dir, layout.TenantFile)
	t.problems = p.problems(t.ref, document.Finding{File: file, Position: p.read(file).Position("spec.repository"), Code: code.ProjectsTwice, Why: "spec.repository binds the " +
		"tenant's own repository, but its projects are here, in " + layout.Join(t.dir, layout.ProjectsFolder) + "; keep one of the two"})
	t.object, t.file = nil, ""
	t.Projects, t.Strays, t.Unknown = nil, nil, true
}

// refusePreviews refuses previews of a project in the platform repository: all tenants share its branches.
func (p *pass) refusePreviews(project *Project) {
	if p.scope.Tenant != "" || project.object == nil || decode(&project.node, &v1alpha1.Project{}).Spec.Previews == nil {
		return
	}
	file := layout.Join(project.dir, layout.ProjectFile)
	project.problems = p.problems(project.ref, document.Finding{File: file, Position: p.read(file).Position("spec.previews"), Code: code.WrongScope,
		Why: "spec.previews: only a project in a tenant's own repository has previews; remove it, or give the tenant a repository"})
	project.object, project.file = nil, ""
}

// tooLarge returns a finding if a file exceeds the budget, without reading it. before is the folder's node in the earlier tree. If the file
// is unchanged, that node knows its size with aliases expanded.
func (p *pass) tooLarge(n *node, file string, e fs.DirEntry, before *node) []document.Finding {
	if p.budget.Fits(document.MaxSize) {
		return nil // The common case: a file of any allowed size fits.
	}
	info, err := e.Info()
	if err != nil {
		return []document.Finding{readFailure(file, err)}
	}
	size := info.Size()
	if size > document.MaxSize {
		return nil // Reading the file reports that it is larger than MaxSize.
	}
	if before.file == n.file {
		n.size = before.size
	}
	switch {
	case !p.budget.Fits(size): // Compare the plain size first, so that the message is the same after a restart.
		return []document.Finding{p.budget.Exceeded(file, size)}
	case !p.budget.Fits(n.size):
		return []document.Finding{p.budget.Exceeded(file, n.size)}
	}
	return nil
}

// keep spends budget for an object. If too little is left, it adds a problem to the node and returns false.
func (p *pass) keep(n *node, d *check.Result, text []byte) bool {
	n.size = max(int64(d.Size), int64(len(text)))
	if !p.budget.Fits(n.size) {
		n.problems = p.problems(n.ref, p.budget.Exceeded(d.File, n.size))
		return false
	}
	p.budget.Spend(budget.Declared(n.size))
	return true
}

// budgetOf returns the budget of a tenant. tenant.yaml must have been read before.
func (p *pass) budgetOf(t *Tenant) *allowance.Allowance {
	limits := p.limits
	if t.object != nil {
		limits = limits.With(&decode(&t.node, &v1alpha1.Tenant{}).Spec.Limits)
	}
	return &allowance.Allowance{Files: "the files project.yaml and app.yaml of tenant " + t.ref.Tenant, Unit: "folders", Limit: limits.TreeBytes}
}

// wrongName returns a finding if no object can have the folder's name. Nothing else is reported about the folder then: when it is renamed,
// the name in its file must change, too.
func (p *pass) wrongName(n *node) []document.Finding {
	if why := p.kinds.Name(n.ref); why != "" {
		return []document.Finding{{File: n.dir, Code: code.InvalidFolderName, Why: why}}
	}
	return nil
}

// checkFile reads and checks a file, and returns the result with the typed object.
func (p *pass) checkFile(file string, n *node) *check.Result {
	return p.kinds.Object(p.read(file), n.ref, n.file != "" && p.accepted[n.ref] == n.file)
}
