package guardrails

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// allowed is a list of what a policy allows. Of two policies, only what both lists have in common is allowed.
type allowed struct {
	// field in the spec of the policy, and what is listed.
	field, what string
	list        []string
	// common reports whether something is in an entry of both lists.
	common func(a, b string) bool
}

func equal(a, b string) bool { return a == b }

// listsOf returns the lists of a policy that refuse what is not in them, always in the same order. An empty one allows everything.
func listsOf(policy *v1alpha1.Policy) []allowed {
	deny := byAction(&policy.Spec.PolicyRules)[v1alpha1.DenyAction]
	images, services, hostnames := orNone(deny.Images), orNone(deny.Services), orNone(deny.Hostnames)
	classes, kinds, egress := orNone(deny.Classes), orNone(deny.Kinds), orNone(policy.Spec.Egress)
	return []allowed{
		{"images.allow", "image", images.Allow, patternsOverlap},
		{"images.pullPolicies", "imagePullPolicy", images.PullPolicies, equal},
		{"services.types", "type of Services", services.Types, equal},
		{"services.loadBalancerClasses", "loadBalancerClass", services.LoadBalancerClasses, equal},
		{"services.loadBalancerSourceRanges", "range that connects to load balancers", services.LoadBalancerSourceRanges, rangesOverlap},
		{"hostnames.suffixes", "host name", hostnames.Suffixes, domainsOverlap},
		{"classes.storage", "StorageClass", classes.Storage, equal},
		{"classes.ingress", "IngressClass", classes.Ingress, equal},
		{"classes.gateway", "GatewayClass", classes.Gateway, equal},
		{"classes.priority", "PriorityClass", classes.Priority, equal},
		{"classes.runtime", "RuntimeClass", classes.Runtime, equal},
		{"kinds.allow", "kind", kinds.Allow, kindsOverlap},
		{"egress.cidrs", "address outside of the cluster", egress.CIDRs, rangesOverlap},
	}
}

// orNone returns rules, and empty ones for nil.
func orNone[T any](rules *T) *T { return cmp.Or(rules, new(T)) }

// Contradictions returns how policies of one tenant contradict each other: two lists of what is allowed have nothing in common, so that nothing is
// allowed; pods would need two values of one label of nodes; or they do not agree about what is added.
func Contradictions(policies []v1alpha1.Policy) (all []string) {
	demands := make([]demand, len(policies))
	for j := range policies {
		demands[j] = demand{policies[j].Name, listsOf(&policies[j]), selectorOf(&policies[j])}
		for _, earlier := range demands[:j] {
			all = append(all, earlier.contradicts(demands[j])...)
		}
	}
	_, added := Added(policies)
	return append(all, added...)
}

// demand is what a policy requires that another one may make impossible.
type demand struct {
	policy   string
	lists    []allowed
	selector map[string]v1alpha1.LabelValue
}

// contradicts returns how two policies contradict each other.
func (a demand) contradicts(b demand) (all []string) {
	for i, one := range a.lists {
		other := b.lists[i]
		if len(one.list) == 0 || len(other.list) == 0 || slices.ContainsFunc(one.list, func(x string) bool {
			return slices.ContainsFunc(other.list, func(y string) bool { return one.common(x, y) })
		}) {
			continue
		}
		all = append(all, fmt.Sprintf("spec.%s of policies/%s.yaml has %s, and that of policies/%s.yaml has %s, so no %s is allowed",
			one.field, a.policy, listed(one.list), b.policy, listed(other.list), one.what))
	}
	for _, key := range slices.Sorted(maps.Keys(a.selector)) {
		if value, both := b.selector[key]; both && value != a.selector[key] {
			all = append(all, fmt.Sprintf("spec.nodes.selector of policies/%s.yaml has %s=%s, and that of policies/%s.yaml has %s, so no pod is allowed", a.policy, key, a.selector[key], b.policy, value))
		}
	}
	return all
}

// selectorOf returns the labels of nodes that a policy requires of pods.
func selectorOf(policy *v1alpha1.Policy) map[string]v1alpha1.LabelValue {
	return orNone(byAction(&policy.Spec.PolicyRules)[v1alpha1.DenyAction].Nodes).Selector
}

func rangesOverlap(a, b string) bool {
	one, wrong := netip.ParsePrefix(a)
	other, alsoWrong := netip.ParsePrefix(b)
	return wrong != nil || alsoWrong != nil || one.Overlaps(other)
}

func domainsOverlap(a, b string) bool { return below([]string{a}, b) || below([]string{b}, a) }

// kindsOverlap compares kinds, and all kinds of a group as "*.<group>".
func kindsOverlap(a, b string) bool {
	ofGroup := func(all, one string) bool {
		group, any := strings.CutPrefix(all, "*.")
		_, of, _ := strings.Cut(one, ".")
		return any && of == group
	}
	return a == b || ofGroup(a, b) || ofGroup(b, a)
}

// patternsOverlap reports whether a name matches both patterns. A pattern has all names below it, too.
func patternsOverlap(a, b string) bool {
	one, other := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(one), len(other)) {
		if !globsOverlap(one[i], other[i]) {
			return false
		}
	}
	return true
}

// globsOverlap reports whether a text matches both globs.
func globsOverlap(a, b string) bool {
	if !strings.Contains(a, "*") && !strings.Contains(b, "*") {
		return a == b
	}
	return wildcardsOverlap(a, b)
}

// wildcardsOverlap is globsOverlap for globs with "*". Its row j says whether what is left of a can match what is left of b after j characters.
func wildcardsOverlap(a, b string) bool {
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		before := row
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*' || j < len(b) && b[j] == '*': // It matches nothing more, or one character of the other.
				row[j] = i < len(a) && before[j] || j < len(b) && row[j+1]
			case i < len(a) && j < len(b):
				row[j] = a[i] == b[j] && before[j+1]
			}
		}
	}
	return row[0]
}
