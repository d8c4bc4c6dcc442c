package tree

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// maxStray bounds how many misplaced files of one folder are named.
const maxStray = 20

// stray returns YAML files where no object is read from. Silence would be worse than an error: a project moved to the
// folder "project" by a slip would look like a project that was removed.
func (p *pass) stray(e fs.DirEntry, file string) []Problem {
	if !e.IsDir() {
		if isYAML(file) {
			return p.problems(Ref{}, p.misplaced(file))
		}
		return nil
	}
	var found []finding
	err := fs.WalkDir(p.files, file, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case unusable(d) != "":
			return passBy(d)
		case len(found) == maxStray:
			return fs.SkipAll
		case d.Type().IsRegular() && isYAML(name):
			found = append(found, p.misplaced(name))
		}
		return nil
	})
	if err != nil {
		found = append(found, unread(file, err))
	}
	return p.problems(Ref{}, found...)
}

// misplaced is the finding that nothing is read from a file.
func (p *pass) misplaced(file string) finding {
	declares := func(name string) bool { return nearly(path.Base(file), name) }
	return finding{file: file, why: p.belongs(file), misplaced: slices.ContainsFunc([]string{tenantFile, projectFile, appFile}, declares)}
}

// belongs says where a misplaced file should be.
func (p *pass) belongs(file string) string {
	prefix := ""
	if p.scope.Tenant == "" {
		prefix = tenantsFolder + "/<tenant>/"
	}
	name := path.Base(file)
	switch {
	case nearly(name, layoutFile):
		return "nothing is read from here; the layout version belongs in kubeop.yaml at the root"
	case nearly(name, tenantFile) && p.scope.Tenant != "":
		return "nothing is read from here; Tenants are declared in the platform repository only"
	case nearly(name, tenantFile):
		return fmt.Sprintf("nothing is read from here; a Tenant belongs in %stenant.yaml", prefix)
	case nearly(name, projectFile):
		return fmt.Sprintf("nothing is read from here; a Project belongs in %sprojects/<project>/project.yaml", prefix)
	case nearly(name, appFile):
		return fmt.Sprintf("nothing is read from here; an App belongs in %sprojects/<project>/apps/<app>/app.yaml", prefix)
	}
	return fmt.Sprintf("nothing is read from here; files an app uses belong in its folder, %sprojects/<project>/apps/<app>/",
		prefix)
}
