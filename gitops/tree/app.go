package tree

import (
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/layout"
)

// readApp reads an app's folder. It is checked as a whole: the digest of the folder covers app.yaml and all files that app.yaml uses.
func (p *pass) readApp(n node, before *App) *App {
	app := &App{node: n}
	if wrong := p.wrongName(&n); len(wrong) > 0 {
		app.problems = p.problems(n.ref, wrong...)
		return app
	}
	within, err := p.in(n.dir) // Each app has its own limits.
	if err != nil {
		app.problems = p.problems(n.ref, readFailure(n.dir, err))
		return app
	}
	app.file = n.digest
	d := within.checkApp(&app.node, nodeOf(before))
	typed, ok := d.Object.(*v1alpha1.App)
	if ok && typed != nil && p.preview != nil {
		p.preview.Adapt(typed)
	}
	app.take(p, d)
	if ok && app.object != nil {
		app.DependsOn = dependenciesOf(typed, n.ref)
	}
	sortProblems(app.problems)
	return app
}

// checkApp checks app.yaml, and that the files and folders it names are in the app's folder.
func (p *pass) checkApp(n, before *node) *check.Result {
	beside, findings := p.look(n.dir)
	for name, e := range beside {
		if layout.Unusable(e) == "" && !strings.Contains(name, "/") && !e.IsDir() && name != layout.AppFile && layout.Nearly(name, layout.AppFile) {
			findings = append(findings, document.Finding{File: layout.Join(n.dir, name), Code: code.MisnamedFile, Why: "nothing is read from here; name it app.yaml"})
		}
	}
	e, _ := beside.Find(layout.AppFile)
	if e == nil || e.IsDir() {
		if len(findings) == 0 {
			findings = []document.Finding{{File: n.dir, Code: code.MissingDeclaration, Why: "the folder has no app.yaml; add it, or remove the folder"}}
		}
		return &check.Result{Document: &document.Document{Findings: findings}}
	}
	if over := p.tooLarge(n, layout.Join(n.dir, layout.AppFile), e, before); over != nil {
		return &check.Result{Document: &document.Document{Findings: over}}
	}
	d := p.checkFile(layout.Join(n.dir, layout.AppFile), n)
	d.Paths(beside)
	d.Findings = append(d.Findings, findings...)
	return d
}

// look lists an app's folder recursively. Every symlink and submodule is a finding, because the files that a chart or a kustomization would
// read through it are not in this commit.
func (p *pass) look(dir string) (all check.Folder, findings []document.Finding) {
	all, unusable, err := layout.Walk(p.files, dir)
	for name, why := range unusable {
		findings = append(findings, document.Finding{File: name, Code: code.UnusableFile, Why: why})
	}
	if err != nil {
		findings = append(findings, readFailure(dir, err))
	}
	return all, findings
}
