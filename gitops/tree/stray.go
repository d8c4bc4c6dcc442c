package tree

import (
	"fmt"
	"io/fs"
	"path"
)

// maxStray bounds how many misplaced files of one folder are named.
const maxStray = 20

// stray reports YAML files where no object is read from. Silence would be worse than an error: a project moved to the
// folder "project" by a slip would look like a project that was removed.
func (p *pass) stray(e fs.DirEntry, file string, u unit) {
	if !e.IsDir() {
		if isYAML(file) {
			p.report(u, finding{file: file, why: p.belongs(file)})
		}
		return
	}
	found := 0
	err := fs.WalkDir(p.files, file, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case unusable(d) != "":
			return passBy(d)
		case found == maxStray:
			return fs.SkipAll
		case d.Type().IsRegular() && isYAML(name):
			found++
			p.report(u, finding{file: name, why: p.belongs(name)})
		}
		return nil
	})
	if err != nil {
		p.report(u, unread(file, err))
	}
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
