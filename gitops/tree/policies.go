package tree

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Policy is a file of the folder of the policies.
type Policy struct{ node }

func (p *Policy) name() string     { return p.ref.Policy }
func (p *Policy) incomplete() bool { return anyIncomplete(p.problems) }

// readPolicies reads the policies of the platform repository. Each is a file of its own, directly in their folder.
func (p *pass) readPolicies(t, before *Tree, root listing) {
	_, t.PoliciesUnknown = root.unusable[layout.PoliciesFolder]
	if !root.folder(layout.PoliciesFolder) {
		return
	}
	within, err := p.in(layout.PoliciesFolder)
	var l listing
	if err == nil {
		l, err = within.list(layout.PoliciesFolder)
	}
	if err != nil {
		t.PoliciesUnknown = true
		t.Strays = append(t.Strays, p.problems(identity.Ref{}, readFailure(layout.PoliciesFolder, err))...)
		return
	}
	within.budget = &treeBudget{files: "the files of " + layout.PoliciesFolder + "/", unit: "files", limit: p.limits.TreeBytes}
	for i, e := range l.entries {
		file := layout.Join(layout.PoliciesFolder, e.Name())
		if within.budget.exhausted() {
			t.PoliciesUnknown = true
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, within.budget.rest(file, len(l.entries)-i-1))...)
			break
		}
		if !l.policy(e) {
			t.Strays = append(t.Strays, within.stray(e, file)...)
			continue
		}
		n := node{ref: identity.Ref{Policy: layout.PolicyName(file)}, dir: file}
		read := func(n node, before *Policy) *Policy { return within.readPolicy(n, e, before) }
		t.Policies = append(t.Policies, readOrReuse(within, n, e, find(before.Policies, n.ref.Policy), read))
	}
	sortByName(t.Policies)
	within.unusablePolicies(t, l)
}

// policy reports whether an entry stands for a policy. A file with another extension, such as baseline.yml, does so unless baseline.yaml is
// there, too: it is not read, and its policy stays as it was.
func (l listing) policy(e fs.DirEntry) bool {
	name := layout.PolicyName(e.Name())
	if e.IsDir() || !layout.IsYAML(e.Name()) || name == "" {
		return false
	}
	if _, there := l.file(name + ".yaml"); there {
		return e.Name() == name+".yaml"
	}
	first := slices.IndexFunc(l.entries, func(other fs.DirEntry) bool {
		return !other.IsDir() && layout.IsYAML(other.Name()) && layout.PolicyName(other.Name()) == name
	})
	return l.entries[first].Name() == e.Name()
}

// unusablePolicies adds the entries that cannot be read. One with the name of a policy's file stands for that policy, which stays as it was.
func (p *pass) unusablePolicies(t *Tree, l listing) {
	for _, name := range slices.Sorted(maps.Keys(l.unusable)) {
		ref, f := identity.Ref{Policy: layout.PolicyName(name)}, l.unusable[name]
		if !layout.IsYAML(name) || strings.Contains(name, "/") || ref.Policy == "" || find(t.Policies, ref.Policy) != nil {
			t.Strays = append(t.Strays, p.problems(identity.Ref{}, f)...)
			continue
		}
		t.Policies = append(t.Policies, &Policy{node{ref: ref, problems: p.problems(ref, f)}})
		sortByName(t.Policies)
	}
}

func (p *pass) readPolicy(n node, e fs.DirEntry, before *Policy) *Policy {
	policy := &Policy{node: n}
	self := &policy.node
	if wrong := p.wrongName(self); len(wrong) > 0 {
		self.problems = p.problems(n.ref, wrong...)
		return policy
	}
	if right := layout.PolicyFile(n.ref.Policy); n.dir != right {
		self.problems = p.problems(n.ref, document.Finding{File: n.dir, Code: code.MisnamedFile, Why: "nothing is read from here; a Policy belongs in " + right})
		return policy
	}
	digest, err := p.digest(n.dir, e)
	if err != nil {
		self.problems = p.problems(n.ref, readFailure(n.dir, err))
		return policy
	}
	self.file = digest
	if over := p.tooLarge(self, n.dir, e, nodeOf(before)); over != nil {
		self.problems = p.problems(n.ref, over...)
		return policy
	}
	self.take(p, p.checkFile(n.dir, self))
	return policy
}

// unknownPolicy returns the finding that there is no policy of the name that a tenant has at an index.
func (p *pass) unknownPolicy(t *Tree, tenant *Tenant, at int) document.Finding {
	file, field, name := layout.Join(tenant.dir, layout.TenantFile), fmt.Sprintf("spec.policies[%d]", at), tenant.policies[at]
	var known []string
	for _, policy := range t.Policies {
		known = append(known, policy.ref.Policy)
	}
	hint := ""
	if near, ok := check.Nearest(name, known); ok {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return document.Finding{File: file, Position: p.read(file).Position(field), Code: code.UnknownPolicy,
		Why: fmt.Sprintf("%s: there is no policy %q%s; add %s, or remove the name", field, name, hint, layout.PolicyFile(name))}
}
