package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Definition is a file that declares an object by itself: a Policy, a Registry or a PriceList.
type Definition struct {
	node
	// byDefault: it is a Policy or a PriceList with spec.default.
	byDefault bool
	// grant is the spec of a Registry; nil for others, and for a file with problems.
	grant *v1alpha1.RegistrySpec
	// asRead is the Registry or PriceList as its file declares it, if this one is refused because of another file; nil otherwise.
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
	file         func(name string) string
	ref          func(name string) identity.Ref
}

var (
	policyKind = kindByName{
		name: v1alpha1.PolicyKind, folder: layout.PoliciesFolder, file: layout.PolicyFile, ref: func(name string) identity.Ref { return identity.Ref{Policy: name} },
	}
	registryKind = kindByName{
		name: v1alpha1.RegistryKind, folder: layout.RegistriesFolder, file: layout.RegistryFile, ref: func(name string) identity.Ref { return identity.Ref{Registry: name} },
	}
	priceListKind = kindByName{
		name: v1alpha1.PriceListKind, folder: layout.PricesFolder, file: layout.PriceListFile, ref: func(name string) identity.Ref { return identity.Ref{PriceList: name} },
	}
)

// readDefinitions reads the objects of a kind. unknown: the commit may declare objects that the list does not have.
func (p *pass) readDefinitions(t *Tree, kind kindByName, before []*Definition, root listing) (all []*Definition, unknown bool) {
	_, unknown = root.unusable[kind.folder]
	if !root.folder(kind.folder) {
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
	within.budget = &treeBudget{files: "the files of " + kind.folder + "/", unit: "files", limit: p.limits.TreeBytes}
	for i, e := range l.entries {
		file := layout.Join(kind.folder, e.Name())
		if within.budget.exhausted() {
			unknown = true
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, within.budget.rest(file, len(l.entries)-i-1))...)
			break
		}
		if !l.definition(e) {
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

// definition reports whether an entry stands for an object. A file with another extension, such as baseline.yml, does so unless baseline.yaml is
// there, too: it is not read, and its object stays as it was.
func (l listing) definition(e fs.DirEntry) bool {
	name := layout.NameOf(e.Name())
	if e.IsDir() || !layout.IsYAML(e.Name()) || name == "" {
		return false
	}
	if _, there := l.file(name + ".yaml"); there {
		return e.Name() == name+".yaml"
	}
	first := slices.IndexFunc(l.entries, func(other fs.DirEntry) bool {
		return !other.IsDir() && layout.IsYAML(other.Name()) && layout.NameOf(other.Name()) == name
	})
	return l.entries[first].Name() == e.Name()
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

// refuseDefaults refuses each price list that is a default beside another one: no tenant's prices follow from the order of files. It is accepted again
// when only one is left.
func (p *pass) refuseDefaults(t, before *Tree) {
	var defaults []*Definition
	for i, list := range t.PriceLists {
		if t.PriceLists[i] = list.fromFile(); t.PriceLists[i].byDefault {
			defaults = append(defaults, t.PriceLists[i])
		}
	}
	for i, list := range t.PriceLists {
		others := slices.DeleteFunc(slices.Clone(defaults), func(d *Definition) bool { return d == list })
		if !list.byDefault || len(others) == 0 {
			continue
		}
		finding := document.Finding{File: list.dir, Position: p.read(list.dir).Position("spec.default"), Code: code.SecondDefault,
			Why: "spec.default: " + others[0].dir + " is the default, too; take it out of one of the two"}
		t.PriceLists[i] = p.refused(list, find(before.PriceLists, list.name()), []document.Finding{finding})
	}
}

// unknownPolicy returns the finding that no policy has the name at an index of a tenant's list of policies.
func (p *pass) unknownPolicy(t *Tree, tenant *Tenant, at int) document.Finding {
	file, field, name := layout.Join(tenant.dir, layout.TenantFile), fmt.Sprintf("spec.policies[%d]", at), tenant.policies[at]
	return document.Finding{File: file, Position: p.read(file).Position(field), Code: code.UnknownPolicy,
		Why: fmt.Sprintf("%s: there is no policy %q%s; add %s, or remove the name", field, name, nearest(name, t.Policies), layout.PolicyFile(name))}
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
