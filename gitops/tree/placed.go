package tree

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
	"github.com/kubeop/kubeop/gitops/placement"
)

// Placement is what decides which projects of a repository are read. The zero value reads all of them.
type Placement struct {
	// Cluster is the name of the operator's cluster, "" for an operator without one; only the projects of this cluster are read. Nil: those of all
	// clusters.
	Cluster *string
	// Rules are the clusters as the API server has them: for a tenant's own repository, and for a file in clusters/ that has problems.
	Rules placement.Rules
	// Tenant are the clusters of the tenant whose own repository is read, as its Tenant names them.
	Tenant []string
	// Live returns an object in the cluster, nil for none. A Tenant or Project whose file has problems stays where it is. Set
	// it with Cluster.
	Live func(identity.Ref) (client.Object, error)
}

// placed is how a tree was placed: whole is the tree before, with the projects of all clusters; nil if nothing is on another one. elsewhere are the clusters of
// the Tenants and Projects that are, and others counts these projects.
type placed struct {
	placement Placement
	whole     *Tree
	elsewhere map[identity.Ref]string
	others    int
}

// Made reports whether the reader would read a commit as it read the tree: by the same limits and clusters.
func (r *Reader) Made(t *Tree) bool {
	a, b := r.Placement, t.placement
	a.Live, b.Live = nil, nil
	return r.Limits == t.Limits && reflect.DeepEqual(a, b)
}

// Elsewhere returns the cluster on which the commit places a Tenant, a Project or an App; "" if that is not another one.
func (t *Tree) Elsewhere(ref identity.Ref) string {
	return cmp.Or(t.elsewhere[identity.Ref{Tenant: ref.Tenant, Project: ref.Project}], t.elsewhere[identity.Ref{Tenant: ref.Tenant}])
}

// Empty reports whether the commit declares nothing, on no cluster.
func (t *Tree) Empty() bool { return t.counts.Objects() == 0 && len(t.elsewhere) == 0 }

// ProjectsElsewhere counts the projects that the commit places on other clusters.
func (t *Tree) ProjectsElsewhere() int { return t.others }

// Rules are the clusters by which the projects of the tree are placed.
func (t *Tree) Rules() (r placement.Rules) {
	live := t.placement.Rules
	if t.Scope.Tenant != "" {
		return live
	}
	for _, cluster := range t.Clusters {
		r.Clusters = append(r.Clusters, cluster.name())
		if cluster.byDefault && cluster.Declared() || !cluster.Declared() && cluster.name() == live.Default && r.Default == "" {
			r.Default = cluster.name()
		}
	}
	return r
}

// place leaves out of a tree what is on other clusters, and refuses the projects that name a cluster which they may not have. It returns the tree itself
// if that changes nothing.
func (p *pass) place(whole *Tree) *Tree {
	rules, own := whole.Rules(), p.placement.Cluster
	if !whole.Usable() || p.scope.Tenant != "" && len(rules.Clusters) == 0 && own == nil {
		return whole
	}
	now := *whole
	now.whole, now.elsewhere, now.Tenants = whole, map[identity.Ref]string{}, nil
	failed := func(is code.Code, why, err error) *Tree {
		now.Tenants = whole.Tenants
		now.Problems = p.problems(identity.Ref{}, document.Finding{File: layout.ClustersFolder, Code: is, Why: why.Error(), Err: err})
		now.count()
		return &now
	}
	if why := rules.Undecided(own, whole.ClustersUnknown); why != nil {
		return failed(code.UndecidedPlacement, why, nil)
	}
	for _, tenant := range whole.Tenants {
		placed, err := p.placeTenant(&now, rules, tenant)
		if err != nil {
			return failed(code.Unreadable, err, err)
		}
		if placed != nil {
			now.Tenants = append(now.Tenants, placed)
		}
	}
	if slices.Equal(now.Tenants, whole.Tenants) {
		return whole
	}
	now.count()
	return &now
}

// placeTenant returns what the cluster has of a tenant; nil if the tenant may not use the cluster.
func (p *pass) placeTenant(now *Tree, rules placement.Rules, whole *Tenant) (*Tenant, error) {
	named, known, err := p.clustersOf(whole)
	if err != nil {
		return nil, err
	}
	allowed, own := rules.Allowed(named), p.placement.Cluster
	tenant := *whole
	tenant.Projects = nil
	switch {
	case own == nil || len(rules.Clusters) == 0:
	case !known:
		tenant.Unknown = tenant.Unknown || len(whole.Projects) > 0
		whole = &tenant
	case !whole.implicit && !slices.Contains(allowed, *own):
		now.elsewhere[whole.ref] = strings.Join(allowed, ", ")
		now.others += whole.counts.Projects
		return nil, nil
	}
	for _, project := range whole.Projects {
		placed, err := p.placeProject(now, rules, allowed, project)
		if err != nil {
			return nil, err
		}
		if placed != nil {
			tenant.Projects = append(tenant.Projects, placed)
		}
	}
	if slices.Equal(tenant.Projects, whole.Projects) && whole != &tenant {
		return whole, nil
	}
	tenant.count()
	return &tenant, nil
}

// clustersOf returns spec.clusters of a tenant, and whether that is known. A Tenant whose file has problems stays as it is in the cluster.
func (p *pass) clustersOf(tenant *Tenant) (named []string, known bool, err error) {
	switch {
	case tenant.ref.Tenant == v1alpha1.PlatformTenant:
		return nil, true, nil
	case tenant.implicit:
		return p.placement.Tenant, true, nil
	case tenant.Declared() || p.placement.Cluster == nil:
		return tenant.clusters, true, nil
	}
	live, err := p.placement.Live(tenant.ref)
	if is, ok := live.(*v1alpha1.Tenant); ok {
		return is.Spec.Clusters, true, err
	}
	return nil, false, err
}

// placeProject returns the project if the cluster has it; nil if another one has. A project that is refused, or whose file has problems, stays where it is: its apps are
// left out if it is not in this cluster.
func (p *pass) placeProject(now *Tree, rules placement.Rules, allowed []string, project *Project) (*Project, error) {
	own, wrong, on := p.placement.Cluster, (*placement.Refusal)(nil), ""
	if project.Declared() {
		on, wrong = rules.Place(placement.Project{Tenant: project.ref.Tenant, Cluster: project.cluster, Platform: project.ref.Tenant == v1alpha1.PlatformTenant}, allowed, p.scope.Tenant == "")
	}
	placed := *project
	switch elsewhere := own != nil && on != "" && on != *own && len(rules.Clusters) > 0; {
	case wrong != nil:
		finding := document.Finding{File: layout.Join(project.dir, layout.ProjectFile), Position: project.field, Code: code.ClusterNotAllowed, Why: wrong.Why}
		if wrong.Unknown {
			finding.Code = code.UnknownCluster
		}
		placed.object, placed.problems = nil, p.problems(project.ref, finding)
	case elsewhere:
		now.elsewhere[project.ref], now.others = on, now.others+1
		return nil, nil
	case project.Declared():
		return project, nil
	}
	if own != nil && len(rules.Clusters) > 0 && len(project.Apps) > 0 {
		live, err := p.placement.Live(project.ref)
		if err != nil {
			return nil, err
		}
		if live == nil {
			placed.Apps, placed.Unknown = nil, true
		}
	}
	if wrong == nil && len(placed.Apps) == len(project.Apps) {
		return project, nil
	}
	placed.count()
	return &placed, nil
}
