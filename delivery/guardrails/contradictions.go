package guardrails

import (
	"cmp"
	"fmt"
	"maps"
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
	// denied is what the policy refuses of the same, and within reports whether all of an entry of a list is among one of these.
	denied []string
	within func(denied, entry string) bool
}

func equal(a, b string) bool { return a == b }

// listsOf returns the lists of a policy that refuse what is not in them, always in the same order. An empty one allows everything.
func listsOf(policy *v1alpha1.Policy) []allowed {
	deny := byAction(&policy.Spec.PolicyRules)[v1alpha1.DenyAction]
	images, services, hostnames := orNone(deny.Images), orNone(deny.Services), orNone(deny.Hostnames)
	classes, kinds, egress := orNone(deny.Classes), orNone(deny.Kinds), orNone(policy.Spec.Egress)
	return append(sourcesOf(deny.Sources), []allowed{
		{"images.allow", "image", images.Allow, patternsOverlap, images.Deny, patternWithin},
		{field: "images.pullPolicies", what: "imagePullPolicy", list: images.PullPolicies, common: equal},
		{field: "services.types", what: "type of Services", list: services.Types, common: equal},
		{field: "services.loadBalancerClasses", what: "loadBalancerClass", list: services.LoadBalancerClasses, common: equal},
		{field: "services.loadBalancerSourceRanges", what: "range that connects to load balancers", list: services.LoadBalancerSourceRanges, common: rangesOverlap},
		{field: "services.externalNames", what: "external name", list: services.ExternalNames, common: domainsOverlap},
		{field: "services.externalIPs", what: "external IP", list: services.ExternalIPs, common: rangesOverlap},
		{field: "services.nodePorts", what: "node port", list: portsOfNodes(services.NodePorts), common: portsOverlap},
		{field: "hostnames.suffixes", what: "host name", list: hostnames.Suffixes, common: domainsOverlap},
		{field: "classes.storage", what: "StorageClass", list: classes.Storage, common: equal},
		{field: "classes.volumeAttributes", what: "VolumeAttributesClass", list: classes.VolumeAttributes, common: equal},
		{field: "classes.ingress", what: "IngressClass", list: classes.Ingress, common: equal},
		{field: "classes.gateway", what: "GatewayClass", list: classes.Gateway, common: equal},
		{field: "classes.priority", what: "PriorityClass", list: classes.Priority, common: equal},
		{field: "classes.runtime", what: "RuntimeClass", list: classes.Runtime, common: equal},
		{"kinds.allow", "kind", kinds.Allow, kindsOverlap, kinds.Deny, kindWithin},
		{field: "nodes.tolerations", what: "toleration of a taint", list: toleratedBy(orNone(deny.Nodes).Tolerations), common: tolerationsOverlap},
		{field: "egress.cidrs", what: "address outside of the cluster", list: egress.CIDRs, common: rangesOverlap},
		{field: "egress.ports", what: "port outside of the cluster", list: portsOf(egress.Ports), common: portsOverlap},
	}...)
}

// sourcesOf returns the lists of the sources of apps.
func sourcesOf(rule *v1alpha1.SourceRules) []allowed {
	of := orNone(rule)
	git, helm, oci := orNone(of.Git), orNone(of.Helm), orNone(of.OCI)
	return []allowed{
		{"sources.git.allow", "Git repository", git.Allow, placesOverlap, git.Deny, placeWithin},
		{"sources.helm.allow", "Helm repository", helm.Allow, placesOverlap, helm.Deny, placeWithin},
		{"sources.oci.allow", "chart or artifact of a registry", oci.Allow, placesOverlap, oci.Deny, placeWithin},
	}
}

// orNone returns rules, and empty ones for nil.
func orNone[T any](rules *T) *T { return cmp.Or(rules, new(T)) }

// Comparison compares policies that tenants are under. It compares each two of them once, however many tenants are under both. The zero value is ready, and policies
// of the same name have to be the same.
type Comparison struct {
	demands map[string]*demand
	pairs   map[[2]string][]string
}

// of returns what a policy requires.
func (c *Comparison) of(policy *v1alpha1.Policy) *demand {
	known := c.demands[policy.Name]
	if known == nil {
		known = &demand{policy.Name, listsOf(policy), byAction(&policy.Spec.PolicyRules)[v1alpha1.DenyAction]}
		if c.demands == nil {
			c.demands, c.pairs = map[string]*demand{}, map[[2]string][]string{}
		}
		c.demands[policy.Name] = known
	}
	return known
}

// pair returns how two policies contradict each other.
func (c *Comparison) pair(earlier, later *demand) []string {
	key := [2]string{earlier.policy, later.policy}
	why, known := c.pairs[key]
	if !known {
		why = slices.Concat(earlier.contradicts(later), earlier.refusedBy(later), later.refusedBy(earlier))
		c.pairs[key] = why
	}
	return why
}

// Contradictions returns how policies of one tenant contradict each other: two lists of what is allowed have nothing in common, or one policy refuses all that another
// lists, so that nothing is allowed; pods would need two values of one label of nodes, or a label that is forbidden; a default class is not allowed; or they do not agree about
// what is added. The policies are sorted by name.
func (c *Comparison) Contradictions(policies []v1alpha1.Policy) (all []string) {
	demands := make([]*demand, len(policies))
	for j := range policies {
		demands[j] = c.of(&policies[j])
		for _, earlier := range demands[:j] {
			all = append(all, c.pair(earlier, demands[j])...)
		}
	}
	_, added := Added(policies)
	return append(append(all, defaultsRefused(demands)...), added...)
}

// Beyond returns how policies contradict domains of a tenant: a policy allows no host name that is below one of them.
func Beyond(domains []string, policies []v1alpha1.Policy) (all []string) {
	own := allowed{list: domains, common: domainsOverlap}
	for i := range policies {
		suffixes := orNone(byAction(&policies[i].Spec.PolicyRules)[v1alpha1.DenyAction].Hostnames).Suffixes
		if len(domains) > 0 && len(suffixes) > 0 && !own.meets(suffixes) {
			all = append(all, fmt.Sprintf("spec.domains of tenant.yaml has %s, and spec.hostnames.suffixes of policies/%s.yaml has %s, so no host name is allowed",
				listed(domains), policies[i].Name, listed(suffixes)))
		}
	}
	return all
}

// demand is what a policy requires that another one may make impossible.
type demand struct {
	policy string
	lists  []allowed
	// deny are its rules with that action.
	deny v1alpha1.PolicyRules
}

// meets reports whether something is in an entry of both lists.
func (a allowed) meets(other []string) bool {
	return slices.ContainsFunc(a.list, func(x string) bool {
		return slices.ContainsFunc(other, func(y string) bool { return a.common(x, y) })
	})
}

// contradicts returns how two policies contradict each other.
func (a *demand) contradicts(b *demand) (all []string) {
	for i := range a.lists {
		one, other := &a.lists[i], &b.lists[i]
		if len(one.list) == 0 || len(other.list) == 0 || one.meets(other.list) {
			continue
		}
		all = append(all, fmt.Sprintf("spec.%s of policies/%s.yaml has %s, and that of policies/%s.yaml has %s, so no %s is allowed",
			one.field, a.policy, listed(one.list), b.policy, listed(other.list), one.what))
	}
	selector, other := orNone(a.deny.Nodes).Selector, orNone(b.deny.Nodes).Selector
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if value, both := other[key]; both && value != selector[key] {
			all = append(all, fmt.Sprintf("spec.nodes.selector of policies/%s.yaml has %s=%s, and that of policies/%s.yaml has %s, so no pod is allowed", a.policy, key, selector[key], b.policy, value))
		}
	}
	return all
}

// refusedBy returns what a policy wants and another one refuses: all that it lists, or a label that workloads need.
func (a *demand) refusedBy(b *demand) (all []string) {
	for i := range a.lists {
		one, denied := &a.lists[i], b.lists[i].denied
		if len(one.list) == 0 || slices.ContainsFunc(one.list, func(entry string) bool {
			return !slices.ContainsFunc(denied, func(d string) bool { return one.within(d, entry) })
		}) {
			continue
		}
		all = append(all, fmt.Sprintf("spec.%s of policies/%s.yaml has %s, and spec.%s of policies/%s.yaml has %s, so no %s is allowed",
			one.field, a.policy, listed(one.list), strings.TrimSuffix(one.field, "allow")+"deny", b.policy, listed(denied), one.what))
	}
	forbidden := orNone(b.deny.Metadata).ForbiddenLabels
	for _, label := range orNone(a.deny.Metadata).RequiredLabels {
		if matchesKey(forbidden, label) {
			all = append(all, fmt.Sprintf("spec.metadata.requiredLabels of policies/%s.yaml has %s, and spec.metadata.forbiddenLabels of policies/%s.yaml has %s, so no workload is allowed",
				a.policy, label, b.policy, listed(forbidden)))
		}
	}
	return all
}

// defaultsRefused returns the default classes that another policy does not allow. Of several policies with one, that of the first counts.
func defaultsRefused(demands []*demand) (all []string) {
	for _, of := range []struct {
		class   string
		written func(*v1alpha1.ClassDefaults) string
		listed  func(*v1alpha1.ClassRules) []string
	}{
		{"ingress", func(d *v1alpha1.ClassDefaults) string { return d.Ingress }, func(c *v1alpha1.ClassRules) []string { return c.Ingress }},
		{"gateway", func(d *v1alpha1.ClassDefaults) string { return d.Gateway }, func(c *v1alpha1.ClassRules) []string { return c.Gateway }},
		{"priority", func(d *v1alpha1.ClassDefaults) string { return d.Priority }, func(c *v1alpha1.ClassRules) []string { return c.Priority }},
		{"runtime", func(d *v1alpha1.ClassDefaults) string { return d.Runtime }, func(c *v1alpha1.ClassRules) []string { return c.Runtime }},
	} {
		written := func(d *demand) string { return of.written(orNone(orNone(d.deny.Classes).Defaults)) }
		first := slices.IndexFunc(demands, func(d *demand) bool { return written(d) != "" })
		if first < 0 {
			continue
		}
		for _, d := range demands {
			list := of.listed(orNone(d.deny.Classes))
			if len(list) > 0 && !slices.Contains(list, written(demands[first])) {
				all = append(all, fmt.Sprintf("spec.classes.defaults.%s of policies/%s.yaml has %s, and spec.classes.%[1]s of policies/%[4]s.yaml has %[5]s, so what names no class is refused",
					of.class, demands[first].policy, written(demands[first]), d.policy, listed(list)))
			}
		}
	}
	return all
}
