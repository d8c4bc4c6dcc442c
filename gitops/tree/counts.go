package tree

import (
	"cmp"
	"slices"
)

// Counts are how many objects of each kind a folder declares, and how many problems it has.
type Counts struct{ Policies, Registries, PriceLists, Clusters, Tenants, Projects, Apps, Problems int }

func (c *Counts) add(o Counts) {
	c.Policies += o.Policies
	c.Registries += o.Registries
	c.PriceLists += o.PriceLists
	c.Clusters += o.Clusters
	c.Tenants += o.Tenants
	c.Projects += o.Projects
	c.Apps += o.Apps
	c.Problems += o.Problems
}

// Counts of the whole tree.
func (t *Tree) Counts() Counts { return t.counts }

// Objects is the number of all objects.
func (c Counts) Objects() int {
	return c.Policies + c.Registries + c.PriceLists + c.Clusters + c.Tenants + c.Projects + c.Apps
}

// count counts what the tree declares, and sorts the problems.
func (t *Tree) count() {
	sortProblems(t.Problems)
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.Problems) + len(t.Strays)}
	for _, d := range t.definitions() {
		t.counts.Problems += len(d.problems)
		switch {
		case !d.Declared():
		case d.ref.Registry != "":
			t.counts.Registries++
		case d.ref.PriceList != "":
			t.counts.PriceLists++
		case d.ref.Cluster != "":
			t.counts.Clusters++
		default:
			t.counts.Policies++
		}
	}
	for _, tenant := range t.Tenants {
		t.counts.add(tenant.counts)
	}
}

func (t *Tenant) count() {
	sortProblems(t.Strays)
	t.counts = Counts{Problems: len(t.problems) + len(t.Strays)}
	if t.Declared() {
		t.counts.Tenants = 1
	}
	for _, project := range t.Projects {
		t.counts.add(project.counts)
	}
}

func (p *Project) count() {
	sortProblems(p.Strays)
	p.counts = Counts{Problems: len(p.problems) + len(p.Strays)}
	if p.Declared() {
		p.counts.Projects = 1
	}
	for _, app := range p.Apps {
		p.counts.Problems += len(app.problems)
		if app.Declared() {
			p.counts.Apps++
		}
	}
	if p.origin != nil {
		p.counts.Problems = 0 // What is wrong with a branch is reported beside the commit, see AllProblems.
	}
}

func sortProblems(list []Problem) {
	slices.SortFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Why, b.Why))
	})
}
