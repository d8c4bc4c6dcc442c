package tree

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
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

// readRoot reads the layout version and then either all tenants or the projects of one.
func (p *pass) readRoot(t, before *Tree) {
	l, err := p.list(".")
	if err != nil {
		t.Problems = p.problems(Ref{}, unread(".", err))
		return
	}
	if t.layout = p.readLayout(l, &before.layout); len(t.layout.problems) > 0 {
		t.Problems = t.layout.problems
		return
	}
	top := tenantsFolder
	if p.scope.Tenant != "" {
		top = projectsFolder
	}
	_, t.Unknown = l.odd[top]
	t.Strays = p.problems(Ref{}, l.strays()...)
	for _, e := range l.entries {
		if e.Name() != layoutFile && (e.Name() != top || !e.IsDir()) {
			t.Strays = append(t.Strays, p.stray(e, e.Name())...)
		}
	}
	if p.scope.Tenant == "" {
		p.readTenants(t, before, l.folder(top))
		return
	}
	tenant := &Tenant{node: node{ref: Ref{Tenant: p.scope.Tenant}}, Unknown: t.Unknown}
	p.room = p.roomOf(tenant)
	if l.folder(top) {
		p.readProjects(tenant, find(before.Tenants, p.scope.Tenant), top)
	}
	tenant.count()
	t.Tenants = []*Tenant{tenant}
}

func (p *pass) readTenants(t, before *Tree, there bool) {
	if !there {
		return
	}
	l, err := p.list(tenantsFolder)
	if err != nil {
		t.Unknown = true
		t.Strays = append(t.Strays, p.problems(Ref{}, unread(tenantsFolder, err))...)
		return
	}
	for name, f := range l.odd {
		ref := Ref{Tenant: name}
		t.Tenants = append(t.Tenants, &Tenant{node: node{ref: ref, problems: p.problems(ref, f)}, Unknown: true})
	}
	for _, e := range l.entries {
		dir := join(tenantsFolder, e.Name())
		if !e.IsDir() {
			t.Strays = append(t.Strays, p.stray(e, dir)...)
			continue
		}
		n := node{ref: Ref{Tenant: e.Name()}, dir: dir}
		t.Tenants = append(t.Tenants, enter(p, n, e, find(before.Tenants, e.Name()), p.readTenant))
	}
	sortByName(t.Tenants)
}

// enter reads the folder of a node, or takes it over where it is the same as before.
func enter[N named](p *pass, n node, e fs.DirEntry, before N, read func(n node, before N) N) N {
	var none N
	var err error
	if n.digest, err = p.digest(n.dir, e); err == nil && before != none && before.self().digest == n.digest && !before.unread() && p.room.again(before.self()) {
		return before
	}
	used, overs := p.room.state()
	now := read(n, before)
	p.room.note(now.self(), used, overs)
	return now
}

// unread reports whether something could not be read: the same folder may tell more the next time.
func (t *Tenant) unread() bool {
	return anyUnread(t.problems, t.Strays) || slices.ContainsFunc(t.Projects, (*Project).unread)
}

func (p *Project) unread() bool {
	return anyUnread(p.problems, p.Strays) || slices.ContainsFunc(p.Apps, (*App).unread)
}

func (a *App) unread() bool { return anyUnread(a.problems) }

func anyUnread(lists ...[]Problem) bool {
	return slices.ContainsFunc(lists, func(list []Problem) bool {
		return slices.ContainsFunc(list, func(p Problem) bool { return p.Err != nil })
	})
}

func (p *pass) readTenant(n node, before *Tenant) *Tenant {
	t := &Tenant{node: n}
	defer t.count()
	within, l, ok := p.open(&t.node, tenantFile)
	if t.Unknown = !ok; t.Unknown {
		return t
	}
	main := within.readFile(&t.node, l, tenantFile, nodeOf(before))
	within.room = within.roomOf(t)
	_, t.Unknown = l.odd[projectsFolder]
	t.Strays = p.problems(Ref{}, l.strays(tenantFile)...)
	for _, e := range l.entries {
		file := join(n.dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == projectsFolder:
			within.readProjects(t, before, file)
		case !e.IsDir() && e.Name() == main:
		default:
			t.Strays = append(t.Strays, within.stray(e, file)...)
		}
	}
	within.bindOnce(t, l)
	return t
}

func nodeOf[N named](n N) *node {
	var none N
	if n == none {
		return &node{}
	}
	return n.self()
}

// open lists the folder of a node whose name an object of its kind can have.
func (p *pass) open(n *node, name string) (*pass, listing, bool) {
	if wrong := p.wrongName(n); len(wrong) > 0 {
		n.problems = p.problems(n.ref, wrong...)
		return p, listing{}, false
	}
	within := p
	var err error
	if n.ref.Project == "" {
		within, err = p.in(n.dir) // Each tenant has limits of its own.
	}
	var l listing
	if err == nil {
		l, err = within.list(n.dir)
	}
	if err != nil {
		n.problems = p.problems(n.ref, unread(n.dir, err))
		return p, listing{}, false
	}
	if f, odd := l.odd[name]; odd {
		n.problems = p.problems(n.ref, f)
	} else if l.nearest(name) == "" {
		n.problems = p.problems(n.ref, finding{file: n.dir, why: fmt.Sprintf("the folder has no %s; add it, or remove the folder", name)})
	}
	return within, l, true
}

func (p *pass) readProjects(t, before *Tenant, dir string) {
	l, err := p.list(dir)
	if err != nil {
		t.Unknown = true
		t.Strays = append(t.Strays, p.problems(Ref{}, unread(dir, err))...)
		return
	}
	var earlier []*Project
	if before != nil {
		earlier = before.Projects
	}
	for name, f := range l.odd {
		ref := Ref{Tenant: t.ref.Tenant, Project: name}
		project := &Project{node: node{ref: ref, problems: p.problems(ref, f)}, Unknown: true}
		project.count()
		t.Projects = append(t.Projects, project)
	}
	for i, e := range l.entries {
		file := join(dir, e.Name())
		if p.room.full() {
			t.Unknown = true
			t.Strays = append(t.Strays, p.problems(Ref{}, p.room.stop(file, len(l.entries)-i-1))...)
			break
		}
		if !e.IsDir() {
			t.Strays = append(t.Strays, p.stray(e, file)...)
			continue
		}
		n := node{ref: Ref{Tenant: t.ref.Tenant, Project: e.Name()}, dir: file}
		t.Projects = append(t.Projects, enter(p, n, e, find(earlier, e.Name()), p.readProject))
	}
	sortByName(t.Projects)
	p.markRings(t, before)
}

func (p *pass) readProject(n node, before *Project) *Project {
	project := &Project{node: n}
	defer project.count()
	_, l, ok := p.open(&project.node, projectFile)
	if project.Unknown = !ok; project.Unknown {
		return project
	}
	main := p.readFile(&project.node, l, projectFile, nodeOf(before))
	_, project.Unknown = l.odd[appsFolder]
	project.Strays = p.problems(Ref{}, l.strays(projectFile)...)
	for _, e := range l.entries {
		file := join(n.dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == appsFolder:
			p.readApps(project, before, file)
		case !e.IsDir() && e.Name() == main:
		default:
			project.Strays = append(project.Strays, p.stray(e, file)...)
		}
	}
	return project
}

func (p *pass) readApps(project, before *Project, dir string) {
	l, err := p.list(dir)
	if err != nil {
		project.Unknown = true
		project.Strays = append(project.Strays, p.problems(Ref{}, unread(dir, err))...)
		return
	}
	var earlier []*App
	if before != nil {
		earlier = before.Apps
	}
	ref := project.ref
	for name, f := range l.odd {
		ref.App = name
		project.Apps = append(project.Apps, &App{node: node{ref: ref, problems: p.problems(ref, f)}})
	}
	for i, e := range l.entries {
		file := join(dir, e.Name())
		if p.room.full() {
			project.Unknown = true
			project.Strays = append(project.Strays, p.problems(Ref{}, p.room.stop(file, len(l.entries)-i-1))...)
			break
		}
		if !e.IsDir() {
			project.Strays = append(project.Strays, p.stray(e, file)...)
			continue
		}
		ref.App = e.Name()
		last := find(earlier, e.Name())
		if last != nil && last.plain != nil {
			last = last.plain
		}
		project.Apps = append(project.Apps, enter(p, node{ref: ref, dir: file}, e, last, p.readApp))
	}
	sortByName(project.Apps)
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

func sortProblems(list []Problem) {
	slices.SortFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Why, b.Why))
	})
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
