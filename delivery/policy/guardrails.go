package policy

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/render/objectset"
)

// Notice is an object that breaks a rule of a Policy.
type Notice struct {
	// Object as "<kind>/<name>".
	Object string
	guardrails.Violation
}

// String returns one line: the object, what is wrong with it, and where the rule is written.
func (n Notice) String() string { return n.Object + " " + n.Why + "; see " + n.Where() }

// Judge returns the rules of Policies that objects break, whatever the action of the rule, in the order of the objects. spec is nil if no policy
// holds. Lists that cannot be expanded are left out: Check refuses them.
// unsigned is why images have no signature that counts, by guardrails.Violation.Unsigned. usual are the cluster's default classes, which objects get that name none.
func Judge(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec, unsigned map[string]string, usual classes.Usual) []Notice {
	if spec == nil {
		return nil
	}
	var all []Notice
	for _, member := range membersOf(objects) {
		for _, v := range slices.Concat(guardrails.Check(member, spec), guardrails.Unnamed(member, spec, usual)) {
			if why := unsigned[v.Unsigned]; why != "" && v.Unsigned != "" {
				v.Why += ": " + why
			}
			all = append(all, Notice{NameOf(member), v})
		}
	}
	return all
}

// membersOf returns objects, and those in Lists. Lists that cannot be expanded are left out.
func membersOf(objects []*unstructured.Unstructured) (all []*unstructured.Unstructured) {
	for _, object := range objects {
		if members, err := objectset.Expand(object); err == nil {
			all = append(all, members...)
		}
	}
	return all
}

// Unverified returns the images of objects whose signatures have to be verified before Judge, each once for a policy. spec is nil if no policy holds.
func Unverified(objects []*unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) (all []guardrails.Unverified) {
	if !guardrails.Verifies(spec) {
		return nil
	}
	type about struct{ image, policy string }
	seen := map[about]bool{}
	for _, member := range membersOf(objects) {
		for _, u := range guardrails.UnverifiedIn(member, spec) {
			if is := (about{u.Image(), u.Policy}); !seen[is] {
				seen[is] = true
				all = append(all, u)
			}
		}
	}
	return all
}

// JudgeSource returns the rules of Policies that a source breaks, for an object as "<kind>/<name>". spec is nil if no policy holds.
func JudgeSource(object string, source guardrails.Source, spec *v1alpha1.GuardrailsSpec) (all []Notice) {
	for _, v := range guardrails.CheckSource(source, spec) {
		all = append(all, Notice{object, v})
	}
	return all
}

// Refusal returns what is broken and denied as an error of package policy; nil for nothing.
func Refusal(broken []Notice) error {
	var found []*Violation
	for _, n := range broken {
		if n.Action == v1alpha1.DenyAction {
			found = append(found, &Violation{Object: n.Object, Rule: n.Rule, Why: n.Why, Remedies: []Remedy{{About: "policy " + n.Policy, Text: n.remedy()}}})
		}
	}
	return join(found)
}

// remedy says who can change what. Owners themselves change what a project says about limits. The class of a claim cannot be changed, nor can the templates
// of a StatefulSet.
func (n Notice) remedy() string {
	ask := ", or ask an administrator of the cluster to change " + n.Where()
	switch {
	case n.Policy == guardrails.ProjectFile && n.Rule == guardrails.Limits:
		return "change that in Git, or " + n.Where()
	case n.Field == "classes.storage":
		return "change that in Git, under another name if it is there already, because its claims stay as they are" + ask
	}
	return "change that in Git" + ask
}
