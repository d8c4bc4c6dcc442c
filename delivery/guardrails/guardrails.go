// Package guardrails says which Policies a tenant is under, and judges objects by their rules. It is pure. The chart's admission policies
// in policies/guardrails judge every write by the same rules, from the same Guardrails object, so both have to change together: a test runs
// the same cases through both.
package guardrails

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Select returns the policies that a tenant is under, sorted by name: those that it names, or else the default ones. missing are the names for
// which there is no policy.
func Select(tenant *v1alpha1.Tenant, all []v1alpha1.Policy) (selected []v1alpha1.Policy, missing []string) {
	for _, p := range all {
		named := slices.Contains(tenant.Spec.Policies, p.Name)
		if named || len(tenant.Spec.Policies) == 0 && p.Spec.Default {
			selected = append(selected, p)
		}
	}
	for _, name := range tenant.Spec.Policies {
		if !slices.ContainsFunc(all, func(p v1alpha1.Policy) bool { return p.Name == name }) {
			missing = append(missing, name)
		}
	}
	slices.SortFunc(selected, func(a, b v1alpha1.Policy) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(missing)
	return selected, missing
}

// Under returns the policies of these names, or the default ones if there are no names, sorted by name.
func Under(names []string, all []v1alpha1.Policy) []v1alpha1.Policy {
	selected, _ := Select(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Policies: names}}, all)
	return selected
}

// Of returns the rules of policies by their actions.
func Of(policies []v1alpha1.Policy) v1alpha1.GuardrailsSpec {
	var spec v1alpha1.GuardrailsSpec
	for i := range policies {
		for action, rules := range byAction(&policies[i].Spec.PolicyRules) {
			list := listOf(&spec, action)
			*list = append(*list, v1alpha1.AppliedPolicy{Policy: policies[i].Name, Signatures: signaturesOf(rules.Images), PolicyRules: rules})
		}
	}
	return spec
}

// TenantFile stands in place of the name of a Policy where spec.domains of the Tenant is the rule. No Policy can have that name.
const TenantFile = "tenant.yaml"

// For returns the rules that hold for a tenant: those of its policies, that its host names are below its own domains, if it has some, and the strictest
// Pod Security level, the labels and annotations that objects get, and the limits of containers and claims, without the defaults of the project.
func For(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) v1alpha1.GuardrailsSpec {
	spec := Of(policies)
	spec.PodSecurity, spec.PodSecurityNotices = podSecurityOf(tenant, policies), podSecurityNotices(policies)
	spec.Added, _ = Added(policies)
	spec.Limits = limitsOf(policies)
	if domains := tenant.Spec.Domains; len(domains) > 0 {
		own := &v1alpha1.HostnameRules{Action: v1alpha1.DenyAction, Suffixes: domains, Wildcards: true}
		spec.Deny = append(spec.Deny, v1alpha1.AppliedPolicy{Policy: TenantFile, PolicyRules: v1alpha1.PolicyRules{Hostnames: own}})
	}
	return spec
}

// Offline returns the rules that hold for a tenant where no registry can be asked: without those about signatures.
func Offline(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) *v1alpha1.GuardrailsSpec {
	unsigned := make([]v1alpha1.Policy, len(policies))
	for i := range policies {
		unsigned[i] = *policies[i].DeepCopy()
		if images := unsigned[i].Spec.Images; images != nil {
			images.Verify = nil
		}
	}
	rules := For(tenant, unsigned)
	return &rules
}

// Labels returns the labels of Guardrails with this spec: for each action and family that has rules, one such as "paas.kubeop.io/deny-images", and one such as
// "paas.kubeop.io/warn" for each action of families that the API server judges. By them the API server finds the policies that it has to evaluate,
// because their bindings select them.
func Labels(spec map[string]any) map[string]string {
	labels := map[string]string{}
	for _, action := range []string{"deny", "warn", "audit"} {
		policies, _ := spec[action].([]any)
		for _, p := range policies {
			labelFamilies(labels, v1alpha1.Group+"/"+action, p.(map[string]any))
		}
	}
	if spec["added"] != nil {
		labels[v1alpha1.Group+"/added-metadata"] = "true"
	}
	if spec["hostnames"] != nil { // Whatever the policies say, host names have to be claimed.
		labels[v1alpha1.Group+"/deny-hostnames"] = "true"
	}
	return labels
}

// labelFamilies adds the labels of the families of one policy. action is the label of their action.
func labelFamilies(labels map[string]string, action string, rules map[string]any) {
	for field := range rules {
		switch field {
		case "policy", "signatures":
		case "sources": // The API server does not judge them.
			labels[action+"-"+field] = "true"
		default:
			labels[action], labels[action+"-"+field] = "true", "true"
		}
	}
}

// byAction splits the rules of a policy by their actions.
func byAction(rules *v1alpha1.PolicyRules) map[v1alpha1.PolicyAction]v1alpha1.PolicyRules {
	split := map[v1alpha1.PolicyAction]v1alpha1.PolicyRules{}
	put := func(action v1alpha1.PolicyAction, set func(*v1alpha1.PolicyRules)) {
		action = cmp.Or(action, v1alpha1.DenyAction)
		part := split[action]
		set(&part)
		split[action] = part
	}
	if r := rules.Images; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Images = r })
	}
	if r := rules.Services; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Services = r })
	}
	if r := rules.Hostnames; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Hostnames = r })
	}
	if r := rules.Classes; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Classes = r })
	}
	if r := rules.Nodes; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Nodes = r })
	}
	if r := rules.Kinds; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Kinds = r })
	}
	if r := withoutAdded(rules.Metadata); r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Metadata = r })
	}
	if r := rules.Sources; r != nil {
		put(r.Action, func(part *v1alpha1.PolicyRules) { part.Sources = r })
	}
	return split
}

// listOf returns the list of the rules with an action; rules with an unknown action are denied.
func listOf(spec *v1alpha1.GuardrailsSpec, action v1alpha1.PolicyAction) *[]v1alpha1.AppliedPolicy {
	switch action {
	case v1alpha1.WarnAction:
		return &spec.Warn
	case v1alpha1.AuditAction:
		return &spec.Audit
	}
	return &spec.Deny
}

// Names of the rules, as messages and metrics have them.
const (
	Images    = "Images"
	Services  = "Services"
	Hostnames = "Hostnames"
	Classes   = "Classes"
	Nodes     = "Nodes"
	Kinds     = "Kinds"
	Metadata  = "Metadata"
	Sources   = "Sources"
	// Limits are settings, whose action is Deny.
	Limits = "Limits"
	// PodSecurityRule is about the Pod Security level. Package podsecurity judges by it.
	PodSecurityRule = "PodSecurity"
	// NetworkPolicies is about what NetworkPolicies of apps open. No policy states it.
	NetworkPolicies = "NetworkPolicies"
)

// Violation is a rule that an object breaks.
type Violation struct {
	// Rule is one of the names above.
	Rule   string
	Policy string
	Action v1alpha1.PolicyAction
	// Field is where the rule is in the Policy's spec, such as "images.allow".
	Field string
	// Why says what is wrong with the object, in words that follow its name.
	Why string
	// Unsigned is the image, as "<full name>@<digest>", of which kubeop has verified no signature; "" if the violation is about something else.
	Unsigned string
}

// Where says where the rule is written.
func (v Violation) Where() string {
	switch {
	case v.Policy == TenantFile:
		return "spec.domains of the tenant's " + TenantFile + " in the platform repository"
	case v.Policy == ProjectFile && v.Rule == Limits:
		return "spec." + v.Field + " of " + ProjectFile
	case v.Policy == ProjectFile:
		return "spec.egress of the tenant's " + TenantFile + " or of its policies in the platform repository"
	}
	return fmt.Sprintf("spec.%s of policies/%s.yaml in the platform repository", v.Field, v.Policy)
}

// rules are the rules about objects, by their names. CheckSource judges by Sources.
var rules = []struct {
	name  string
	check func(*unstructured.Unstructured, *v1alpha1.PolicyRules) []found
}{{Images, images}, {Services, services}, {Hostnames, hostnames}, {Classes, classes}, {Nodes, nodes}, {Kinds, kinds}, {Metadata, metadata}}

// Check returns the rules that an object breaks, in the order of actions (Deny, Warn, Audit) and policies, then what a NetworkPolicy may not open, and then the limits of
// containers and claims. Unnamed is about what names no class.
func Check(object *unstructured.Unstructured, spec *v1alpha1.GuardrailsSpec) []Violation {
	var all []Violation
	for _, action := range []v1alpha1.PolicyAction{v1alpha1.DenyAction, v1alpha1.WarnAction, v1alpha1.AuditAction} {
		for _, applied := range *listOf(spec, action) {
			all = append(all, violations(object, action, &applied, spec.Signed)...)
		}
	}
	return append(append(all, opening(object, spec)...), limits(object, spec)...)
}

// violations returns the rules of one policy that an object breaks.
func violations(object *unstructured.Unstructured, action v1alpha1.PolicyAction, applied *v1alpha1.AppliedPolicy, signed []v1alpha1.SignedImages) []Violation {
	var all []Violation
	for _, rule := range rules {
		for _, f := range rule.check(object, &applied.PolicyRules) {
			all = append(all, Violation{Rule: rule.name, Policy: applied.Policy, Action: action, Field: f.field, Why: f.why})
		}
	}
	for _, u := range signatures(object, applied, signed) {
		all = append(all, Violation{Rule: Images, Policy: applied.Policy, Action: action, Field: verifyField, Why: u.why, Unsigned: u.image})
	}
	return all
}
