package tree

import (
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// readRoot reads the layout version, and then all policies, registries, price lists, clusters and tenants, and the platform's projects, or the projects of one tenant.
func (p *pass) readRoot(t, before *Tree) {
	l, err := p.list(".")
	if err != nil {
		t.Problems = p.problems(identity.Ref{}, readFailure(".", err))
		return
	}
	if t.layout = p.readLayout(l, &before.layout); len(t.layout.problems) > 0 {
		t.Problems = t.layout.problems
		return
	}
	tops := p.tops()
	_, t.Unknown = l.unusable[tops[0]]
	t.Strays = p.problems(identity.Ref{}, l.strays()...)
	for _, e := range l.Entries {
		if e.Name() != layout.VersionFile && (!e.IsDir() || !slices.Contains(tops, e.Name())) {
			t.Strays = append(t.Strays, p.stray(e, e.Name())...)
		}
	}
	if p.scope.Tenant == "" {
		t.Policies, t.PoliciesUnknown = p.readDefinitions(t, policyKind, before.Policies, l)
		t.Registries, t.RegistriesUnknown = p.readDefinitions(t, registryKind, before.Registries, l)
		t.PriceLists, t.PriceListsUnknown = p.readDefinitions(t, priceListKind, before.PriceLists, l)
		t.Clusters, t.ClustersUnknown = p.readDefinitions(t, clusterKind, before.Clusters, l)
		p.refuseDefaults(t.PriceLists, before.PriceLists)
		p.refuseDefaults(t.Clusters, before.Clusters)
		p.readTenants(t, before, l.Folder(tops[0]))
		p.readPlatform(t, before, l)
		p.refuseTenants(t, before)
		p.refuseRegistries(t, before)
		p.reportContradictions(t, before)
		return
	}
	t.Tenants = []*Tenant{p.readImplicit(p.scope.Tenant, tops[0], l, before)}
}

// tops are the folders of the root that are read. The first one has the tenants or, in a tenant's repository, the projects.
func (p *pass) tops() []string {
	if p.scope.Tenant != "" {
		return []string{layout.ProjectsFolder}
	}
	all := []string{layout.TenantsFolder, layout.PoliciesFolder, layout.RegistriesFolder, layout.PricesFolder, layout.ClustersFolder}
	if p.platform {
		all = append(all, layout.PlatformFolder)
	}
	return all
}

// readImplicit reads the projects of a tenant that the repository does not declare, from a folder of the root.
func (p *pass) readImplicit(name, dir string, root listing, before *Tree) *Tenant {
	_, unknown := root.unusable[dir]
	tenant := &Tenant{node: node{ref: identity.Ref{Tenant: name}}, Unknown: unknown, implicit: true}
	within := *p
	within.budget = p.budgetOf(tenant)
	if root.Folder(dir) {
		within.readProjects(tenant, find(before.Tenants, name), dir)
	}
	tenant.count()
	return tenant
}

// isPlatform reports whether a tenant's name is the one reserved for the platform itself. No Tenant of this name can be declared, and the
// platform's projects are in the folder platform/.
func (p *pass) isPlatform(tenant string) bool { return p.platform && tenant == v1alpha1.PlatformTenant }

// readPlatform reads the projects of the platform itself. They have the default limits.
func (p *pass) readPlatform(t, before *Tree, root listing) {
	_, unusable := root.unusable[layout.PlatformFolder]
	if !p.platform || !unusable && !root.Folder(layout.PlatformFolder) {
		return
	}
	within := p
	if !unusable {
		var err error
		if within, err = p.in(layout.PlatformFolder); err != nil {
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, readFailure(layout.PlatformFolder, err))...)
			t.Unknown = true
			return
		}
	}
	t.Tenants = append(t.Tenants, within.readImplicit(v1alpha1.PlatformTenant, layout.PlatformFolder, root, before))
	sortByName(t.Tenants)
}

func (p *pass) readTenants(t, before *Tree, there bool) {
	if !there {
		return
	}
	l, err := p.list(layout.TenantsFolder)
	if err != nil {
		t.Unknown = true
		t.Strays = append(t.Strays, p.problems(identity.Ref{}, readFailure(layout.TenantsFolder, err))...)
		return
	}
	for name, f := range l.unusable {
		ref := identity.Ref{Tenant: name}
		if p.isPlatform(name) {
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, f)...)
			continue
		}
		tenant := &Tenant{node: node{ref: ref, problems: p.problems(ref, f)}, Unknown: true}
		tenant.count()
		t.Tenants = append(t.Tenants, tenant)
	}
	for _, e := range l.Entries {
		dir := layout.Join(layout.TenantsFolder, e.Name())
		if !e.IsDir() || p.isPlatform(e.Name()) {
			t.Strays = append(t.Strays, p.stray(e, dir)...)
			continue
		}
		n := node{ref: identity.Ref{Tenant: e.Name()}, dir: dir}
		t.Tenants = append(t.Tenants, readOrReuse(p, n, e, find(before.Tenants, e.Name()).fromFolder(), p.readTenant))
	}
	sortByName(t.Tenants)
}

func (p *pass) readTenant(n node, before *Tenant) *Tenant {
	t := &Tenant{node: n}
	defer t.count()
	within, l, ok := p.open(&t.node, layout.TenantFile)
	if t.Unknown = !ok; t.Unknown {
		return t
	}
	main := within.readFile(&t.node, l, layout.TenantFile, nodeOf(before))
	within.budget = within.budgetOf(t)
	t.terms = termsOf(&t.node)
	_, t.Unknown = l.unusable[layout.ProjectsFolder]
	t.Strays = p.problems(identity.Ref{}, l.strays(layout.TenantFile)...)
	for _, e := range l.Entries {
		file := layout.Join(n.dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == layout.ProjectsFolder:
			within.readProjects(t, before, file)
		case !e.IsDir() && e.Name() == main:
		default:
			t.Strays = append(t.Strays, within.stray(e, file)...)
		}
	}
	within.bindOnce(t, l)
	return t
}

// open lists the folder of a node. It returns false if no object of the kind can have the folder's name, or the folder cannot be listed.
func (p *pass) open(n *node, name string) (*pass, listing, bool) {
	if wrong := p.wrongName(n); len(wrong) > 0 {
		n.problems = p.problems(n.ref, wrong...)
		return p, listing{}, false
	}
	within := p
	var err error
	if n.ref.Project == "" {
		within, err = p.in(n.dir) // Each tenant has its own limits.
	}
	var l listing
	if err == nil {
		l, err = within.list(n.dir)
	}
	if err != nil {
		n.problems = p.problems(n.ref, readFailure(n.dir, err))
		return p, listing{}, false
	}
	if f, there := l.unusable[name]; there {
		n.problems = p.problems(n.ref, f)
	} else if l.Nearest(name) == "" {
		n.problems = p.problems(n.ref, document.Finding{File: n.dir, Code: code.MissingDeclaration, Why: fmt.Sprintf("the folder has no %s; add it, or remove the folder", name)})
	}
	return within, l, true
}

func (p *pass) readProjects(t, before *Tenant, dir string) {
	l, err := p.list(dir)
	if err != nil {
		t.Unknown = true
		t.Strays = append(t.Strays, p.problems(identity.Ref{}, readFailure(dir, err))...)
		return
	}
	var earlier []*Project
	if before != nil {
		earlier = before.Projects
	}
	for name, f := range l.unusable {
		ref := identity.Ref{Tenant: t.ref.Tenant, Project: name}
		project := &Project{node: node{ref: ref, problems: p.problems(ref, f)}, Unknown: true}
		project.count()
		t.Projects = append(t.Projects, project)
	}
	for i, e := range l.Entries {
		file := layout.Join(dir, e.Name())
		if p.budget.Exhausted() {
			t.Unknown = true
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, p.budget.Rest(file, len(l.Entries)-i-1))...)
			break
		}
		if !e.IsDir() {
			t.Strays = append(t.Strays, p.stray(e, file)...)
			continue
		}
		n := node{ref: identity.Ref{Tenant: t.ref.Tenant, Project: e.Name()}, dir: file}
		t.Projects = append(t.Projects, readOrReuse(p, n, e, find(earlier, e.Name()), p.readProject))
	}
	sortByName(t.Projects)
	p.refuseCycles(t)
}

func (p *pass) readProject(n node, before *Project) *Project {
	project := &Project{node: n}
	defer project.count()
	_, l, ok := p.open(&project.node, layout.ProjectFile)
	if project.Unknown = !ok; project.Unknown {
		return project
	}
	main := p.readFile(&project.node, l, layout.ProjectFile, nodeOf(before))
	p.refusePreviews(project)
	if project.object != nil {
		project.cluster = decode(&project.node, &v1alpha1.Project{}).Spec.Cluster
	}
	_, project.Unknown = l.unusable[layout.AppsFolder]
	project.Strays = p.problems(identity.Ref{}, l.strays(layout.ProjectFile)...)
	for _, e := range l.Entries {
		file := layout.Join(n.dir, e.Name())
		switch {
		case e.IsDir() && e.Name() == layout.AppsFolder:
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
		project.Strays = append(project.Strays, p.problems(identity.Ref{}, readFailure(dir, err))...)
		return
	}
	var earlier []*App
	if before != nil {
		earlier = before.Apps
	}
	ref := project.ref
	for name, f := range l.unusable {
		ref.App = name
		project.Apps = append(project.Apps, &App{node: node{ref: ref, problems: p.problems(ref, f)}})
	}
	for i, e := range l.Entries {
		file := layout.Join(dir, e.Name())
		if p.budget.Exhausted() {
			project.Unknown = true
			project.Strays = append(project.Strays, p.problems(identity.Ref{}, p.budget.Rest(file, len(l.Entries)-i-1))...)
			break
		}
		if !e.IsDir() {
			project.Strays = append(project.Strays, p.stray(e, file)...)
			continue
		}
		ref.App = e.Name()
		// An app that was refused because of a cycle stays the same node while the cycle is the same: refuseCycles decides.
		project.Apps = append(project.Apps, readOrReuse(p, node{ref: ref, dir: file}, e, find(earlier, e.Name()), p.readApp))
	}
	sortByName(project.Apps)
}
