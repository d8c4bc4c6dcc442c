package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/allowance"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Definition is a file that declares an object by itself: a Policy, a Registry, a PriceList or a Cluster.
type Definition struct {
	node
	// byDefault: it is a Policy, a PriceList or a Cluster with spec.default.
	byDefault bool
	// grant is the spec of a Registry; nil for others, and for a file with problems.
	grant *v1alpha1.RegistrySpec
	// asRead is the Registry, PriceList or Cluster as its file declares it, if this one is refused because of another file; nil otherwise.
	asRead *Definition
}

func (d *Definition) name() string     { return d.ref.Key().Name }
func (d *Definition) incomplete() bool { return anyIncomplete(d.problems) }

// fromFile returns the definition as it was read from its file, before any refusal because of another file.
func (d *Definition) fromFile() *Definition {
	if d != nil && d.asRead != nil {
		return d.asRead
	}
	return d
}

// kindByName is a kind whose objects have a file of their own, directly in one folder of the platform repository.
type kindByName struct {
	name, folder string
	ref          func(name string) identity.Ref
	// words name the kind in messages, and missing is the code of the problem that there is no object of a name.
	words   string
	missing code.Code
}

var (
	policyKind    = kindByName{v1alpha1.PolicyKind, layout.PoliciesFolder, func(name string) identity.Ref { return identity.Ref{Policy: name} }, "policy", code.UnknownPolicy}
	registryKind  = kindByName{v1alpha1.RegistryKind, layout.RegistriesFolder, func(name string) identity.Ref { return identity.Ref{Registry: name} }, "registry", ""}
	priceListKind = kindByName{v1alpha1.PriceListKind, layout.PricesFolder, func(name string) identity.Ref { return identity.Ref{PriceList: name} }, "price list", code.UnknownPriceList}
	clusterKind   = kindByName{v1alpha1.ClusterKind, layout.ClustersFolder, func(name string) identity.Ref { return identity.Ref{Cluster: name} }, "cluster", code.UnknownCluster}
)

// file is the path of the file that declares the object of a name.
func (k kindByName) file(name string) string { return k.ref(name).File(true) }

// readDefinitions reads the objects of a kind. unknown: the commit may declare objects that the list does not have.
func (p *pass) readDefinitions(t *Tree, kind kindByName, before []*Definition, root listing) (all []*Definition, unknown bool) {
	_, unknown = root.unusable[kind.folder]
	if !root.Folder(kind.folder) {
		return nil, unknown
	}
	within, err := p.in(kind.folder)
	var l listing
	if err == nil {
		l, err = within.list(kind.folder)
	}
	if err != nil {
		t.Strays = append(t.Strays, p.problems(identity.Ref{}, readFailure(kind.folder, err))...)
		return nil, true
	}
	within.budget = &allowance.Allowance{Files: "the files of " + kind.folder + "/", Unit: "files", Limit: p.limits.TreeBytes}
	for i, e := range l.Entries {
		file := layout.Join(kind.folder, e.Name())
		if within.budget.Exhausted() {
			unknown = true
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, within.budget.Rest(file, len(l.Entries)-i-1))...)
			break
		}
		if !l.Definition(e) {
			t.Strays = append(t.Strays, within.stray(e, file)...)
			continue
		}
		n := node{ref: kind.ref(layout.NameOf(file)), dir: file}
		read := func(n node, before *Definition) *Definition { return within.readDefinition(kind, n, e, before) }
		all = append(all, readOrReuse(within, n, e, find(before, n.ref.Key().Name).fromFile(), read))
	}
	sortByName(all)
	return within.unusableDefinitions(t, kind, all, l), unknown
}

// unusableDefinitions adds the entries that cannot be read. One with the name of an object's file stands for that object, which stays as it was.
func (p *pass) unusableDefinitions(t *Tree, kind kindByName, all []*Definition, l listing) []*Definition {
	for _, name := range slices.Sorted(maps.Keys(l.unusable)) {
		f, of := l.unusable[name], layout.NameOf(name)
		if !layout.IsYAML(name) || strings.Contains(name, "/") || of == "" || find(all, of) != nil {
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, f)...)
			continue
		}
		ref := kind.ref(of)
		all = append(all, &Definition{node: node{ref: ref, problems: p.problems(ref, f)}})
		sortByName(all)
	}
	return all
}

func (p *pass) readDefinition(kind kindByName, n node, e fs.DirEntry, before *Definition) *Definition {
	d := &Definition{node: n}
	self := &d.node
	if wrong := p.wrongName(self); len(wrong) > 0 {
		self.problems = p.problems(n.ref, wrong...)
		return d
	}
	if right := kind.file(d.name()); n.dir != right {
		why := fmt.Sprintf("nothing is read from here; a %s belongs in %s", kind.name, right)
		self.problems = p.problems(n.ref, document.Finding{File: n.dir, Code: code.MisnamedFile, Why: why})
		return d
	}
	digest, err := p.digest(n.dir, e)
	if err != nil {
		self.problems = p.problems(n.ref, readFailure(n.dir, err))
		return d
	}
	self.file = digest
	if over := p.tooLarge(self, n.dir, e, nodeOf(before)); over != nil {
		self.problems = p.problems(n.ref, over...)
		return d
	}
	self.take(p, p.checkFile(n.dir, self))
	switch {
	case self.object == nil:
	case kind.name == v1alpha1.RegistryKind:
		d.grant = &decode(self, &v1alpha1.Registry{}).Spec
	case kind.name == v1alpha1.ClusterKind:
		d.byDefault = decode(self, &v1alpha1.Cluster{}).Spec.Default
	case kind.name == v1alpha1.PriceListKind:
		d.byDefault = decode(self, &v1alpha1.PriceList{}).Spec.Default
	default:
		d.byDefault = decode(self, &v1alpha1.Policy{}).Spec.Default
	}
	return d
}

// refused returns a copy of a definition that is refused because of other files; the one of the tree before if that is the same.
func (p *pass) refused(d, was *Definition, found []document.Finding) *Definition {
	refused := *d
	refused.asRead, refused.object, refused.problems = d, nil, p.problems(d.ref, found...)
	if was != nil && was.asRead == d && slices.Equal(was.problems, refused.problems) {
		return was
	}
	return &refused
}

// refuseDefaults refuses each definition of a kind that is a default beside another one: what holds for a tenant does not follow from the order of
// files. It is accepted again when only one is left. all is changed; before is that of the tree before.
func (p *pass) refuseDefaults(all, before []*Definition) {
	var defaults []*Definition
	for i, d := range all {
		if all[i] = d.fromFile(); all[i].byDefault {
			defaults = append(defaults, all[i])
		}
	}
	for i, d := range all {
		others := slices.DeleteFunc(slices.Clone(defaults), func(o *Definition) bool { return o == d })
		if !d.byDefault || len(others) == 0 {
			continue
		}
		finding := document.Finding{File: d.dir, Position: p.read(d.dir).Position("spec.default"), Code: code.SecondDefault,
			Why: "spec.default: " + others[0].dir + " is the default, too; take it out of one of the two"}
		all[i] = p.refused(d, find(before, d.name()), []document.Finding{finding})
	}
}

// nearest returns the words " (did you mean baseline?)" if one of the nodes has nearly that name; "" for none.
func nearest[N named](name string, among []N) string {
	var known []string
	for _, n := range among {
		known = append(known, n.name())
	}
	if near, ok := check.Nearest(name, known); ok {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}
