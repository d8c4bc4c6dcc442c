package tree

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The fixed names of the layout. Everything else in a path is the name of an object.
const (
	layoutFile  = "kubeop.yaml"
	tenantFile  = "tenant.yaml"
	projectFile = "project.yaml"
	appFile     = "app.yaml"

	tenantsFolder  = "tenants"
	projectsFolder = "projects"
	appsFolder     = "apps"
)

// unit is what a problem holds back; see Problem.
type unit struct{ tenant, project string }

// pass is one reading of one commit.
type pass struct {
	kinds map[string]*kind
	files Files
	scope Scope
	last  memory
	next  memory
	tree  *Tree
}

// readRoot reads the layout version and then either all tenants or the projects of one.
func (p *pass) readRoot() {
	entries := p.list(".", unit{})
	if !p.checkLayoutVersion(entries) {
		return
	}
	top := tenantsFolder
	if p.scope.Tenant != "" {
		top = projectsFolder
	}
	for _, e := range entries {
		switch {
		case e.IsDir() && e.Name() == top && p.scope.Tenant == "":
			p.readTenants(top)
		case e.IsDir() && e.Name() == top:
			p.readProjects(top, p.scope.Tenant)
		case e.Name() == layoutFile && !e.IsDir():
		default:
			p.stray(e, e.Name(), unit{})
		}
	}
}

func (p *pass) readTenants(dir string) {
	for _, e := range p.list(dir, unit{}) {
		if e.IsDir() {
			p.readTenant(join(dir, e.Name()), e.Name())
			continue
		}
		p.stray(e, join(dir, e.Name()), unit{})
	}
}

func (p *pass) readTenant(dir, tenant string) {
	u := unit{tenant: tenant}
	entries := p.list(dir, u)
	for _, e := range entries {
		file := join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == projectsFolder:
			p.readProjects(file, tenant)
		case !e.IsDir() && e.Name() == tenantFile:
			p.addTenant(dir, tenant, slices.ContainsFunc(entries, isProjects))
		default:
			p.stray(e, file, u)
		}
	}
	p.require(dir, tenantFile, entries, u)
}

func isProjects(e fs.DirEntry) bool { return e.IsDir() && e.Name() == projectsFolder }

func (p *pass) readProjects(dir, tenant string) {
	for _, e := range p.list(dir, unit{tenant: tenant}) {
		if e.IsDir() {
			p.readProject(join(dir, e.Name()), unit{tenant: tenant, project: e.Name()})
			continue
		}
		p.stray(e, join(dir, e.Name()), unit{tenant: tenant})
	}
}

func (p *pass) readProject(dir string, u unit) {
	entries := p.list(dir, u)
	for _, e := range entries {
		file := join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == appsFolder:
			p.readApps(file, u)
		case !e.IsDir() && e.Name() == projectFile:
			p.addProject(dir, u)
		default:
			p.stray(e, file, u)
		}
	}
	p.require(dir, projectFile, entries, u)
}

func (p *pass) readApps(dir string, u unit) {
	for _, e := range p.list(dir, u) {
		if e.IsDir() {
			p.addApp(join(dir, e.Name()), u, e.Name())
			continue
		}
		p.stray(e, join(dir, e.Name()), u)
	}
}

// list returns the regular files and folders of dir and reports everything else in it. What has nothing to do with
// kubeop at the root is left out.
func (p *pass) list(dir string, u unit) []fs.DirEntry {
	entries, err := fs.ReadDir(p.files, dir)
	if err != nil {
		p.report(u, unread(dir, err))
		return nil
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e fs.DirEntry) bool {
		if dir == "." && ignoredAtRoot(e.Name()) {
			return true
		}
		why := unusable(e)
		if why != "" {
			p.report(u, finding{file: join(dir, e.Name()), why: why})
		}
		return why != ""
	})
}

// ignoredAtRoot reports whether an entry of the root is for people and for the Git host.
func ignoredAtRoot(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(name, ".") || strings.HasPrefix(upper, "README") || strings.HasPrefix(upper, "LICENSE") ||
		upper == "DOCS"
}

// unusable says why an entry is neither a file nor a folder whose content is in this commit.
func unusable(e fs.DirEntry) string {
	switch {
	case e.Name() == "." || !fs.ValidPath(e.Name()) || strings.Contains(e.Name(), "/"):
		return "this is not a usable file name"
	case e.Type()&fs.ModeSymlink != 0:
		return "symlinks are not followed; commit the file itself"
	case e.Type()&fs.ModeIrregular != 0:
		return "submodules are not fetched; commit the files themselves"
	case !e.IsDir() && !e.Type().IsRegular():
		return "only regular files and folders are read"
	}
	return ""
}

// require reports a folder without the file that says what it is. A file that is nearly named so has been reported as
// stray already, and nil entries are a folder that could not be read.
func (p *pass) require(dir, name string, entries []fs.DirEntry, u unit) {
	if entries == nil {
		return
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() && nearly(e.Name(), name) }) {
		return
	}
	p.report(u, finding{file: dir, why: fmt.Sprintf("the folder has no %s; add it, or remove the folder", name)})
}

// nearly reports whether a file is named as wanted up to case and the spelling of the YAML extension.
func nearly(name, want string) bool {
	return isYAML(name) && strings.EqualFold(stem(name), stem(want))
}

func isYAML(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

func stem(name string) string { return strings.TrimSuffix(name, path.Ext(name)) }

// join appends an entry's name without cleaning, so that no name can climb out of its folder.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// report adds findings as problems of the unit.
func (p *pass) report(u unit, findings ...finding) {
	for _, f := range findings {
		p.tree.Problems = append(p.tree.Problems, Problem{
			File: printable(path.Join(p.scope.Path, f.file)), Line: f.line, Why: f.why,
			Tenant: u.tenant, Project: u.project, Err: f.err,
		})
	}
}

// printable replaces what would break the one line that a message is; names and keys in a commit may hold anything.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

// namespaceOf returns where an object of the kind lives; Tenants have no namespace.
func namespaceOf(kind string, u unit) string {
	switch kind {
	case v1alpha1.ProjectKind:
		return v1alpha1.HomeNamespace(u.tenant)
	case v1alpha1.AppKind:
		return v1alpha1.ProjectNamespace(u.tenant, u.project)
	}
	return ""
}
