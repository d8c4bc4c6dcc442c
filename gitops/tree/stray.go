package tree

import (
	"io/fs"

	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// maxStray limits how many misplaced files of one folder are reported.
const maxStray = 20

// stray reports YAML files where no object is read from. To ignore them would be worse: a project moved to the folder "project" by mistake
// would look like a removed project.
func (p *pass) stray(e fs.DirEntry, file string) []Problem {
	if !e.IsDir() {
		if layout.IsYAML(file) {
			return p.problems(identity.Ref{}, p.misplaced(file))
		}
		return nil
	}
	var found []document.Finding
	err := fs.WalkDir(p.files, file, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case layout.Unusable(d) != "":
			return layout.SkipUnusable(d)
		case len(found) == maxStray:
			return fs.SkipAll
		case d.Type().IsRegular() && layout.IsYAML(name):
			found = append(found, p.misplaced(name))
		}
		return nil
	})
	if err != nil {
		found = append(found, readFailure(file, err))
	}
	return p.problems(identity.Ref{}, found...)
}

// misplaced returns the finding that nothing is read from a file.
func (p *pass) misplaced(file string) document.Finding {
	why := layout.Belongs(file, p.scope.Tenant == "")
	if p.scope.Tenant == "" && layout.OfPlatform(file) {
		why = layout.BelongsToPlatform(file, p.platform)
	}
	return document.Finding{File: file, Code: code.MisplacedFile, Why: why, Misplaced: layout.Declares(file) || p.scope.Tenant == "" && layout.DeclaresByName(file)}
}
