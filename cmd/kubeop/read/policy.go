package read

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// describePolicy shows the rules of a policy and, to those who may list tenants, the tenants that are under it.
func describePolicy(ctx context.Context, page *output.Page, reader client.Client, policy *v1alpha1.Policy) error {
	page.Field("Declared in", policy.Annotations[v1alpha1.FolderAnnotation])
	if policy.Spec.Default {
		page.Field("Default", "yes: it holds for tenants that name no policy")
	}
	page.Title("Rules")
	describeRules(page, &policy.Spec.PolicyRules)
	if of := policy.Spec.Metadata; of != nil {
		describeAdded(page, of.Added)
	}
	if of := policy.Spec.Egress; of != nil {
		describeRule(page, "egress", "", "to", of.CIDRs, "ports", portsOf(of.Ports))
	}
	if of := policy.Spec.Quota; of != nil {
		describeRule(page, "quota", "", "at most", amountsOf(of.Max), "default", amountsOf(of.Default))
	}
	if of := policy.Spec.Limits; of != nil {
		claims := cmp.Or(of.Claims, &v1alpha1.ClaimSizes{})
		describeRule(page, "limits", "", "at most", amountsOf(of.Max), "at least", amountsOf(of.Min), "default", amountsOf(of.Default), "default request", amountsOf(of.DefaultRequest),
			"ratio", amountsOf(of.Ratio), "claims at most", size(claims.Max), "claims at least", size(claims.Min))
	}
	if of := policy.Spec.PodSecurity; of != nil {
		describeRule(page, "podSecurity", of.Action, "level", []string{of.Level}, "version", []string{cmp.Or(of.Version, "latest")})
	}
	tenants := &v1alpha1.TenantList{}
	err := reader.List(ctx, tenants)
	switch {
	case apierrors.IsForbidden(err): // Only administrators may list tenants.
		page.Title("Tenants that are under it")
		page.Line("Your role does not show them.")
		return nil
	case err != nil:
		return fmt.Errorf("listing the tenants that are under policy %s: %w", policy.Name, err)
	}
	titled := false
	for i := range tenants.Items {
		if names := tenants.Items[i].Spec.Policies; slices.Contains(names, policy.Name) || len(names) == 0 && policy.Spec.Default {
			if !titled {
				page.Title("Tenants that are under it")
				titled = true
			}
			page.Line(tenants.Items[i].Name)
		}
	}
	return nil
}

// describeGuardrails shows the host names that a project has, and the rules that hold in it, by the policies that they are written in.
func describeGuardrails(ctx context.Context, page *output.Page, reader client.Client, namespace string) error {
	if namespace == "" {
		return nil
	}
	live := &v1alpha1.Guardrails{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.GuardrailsName}, live)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // The project is new: its condition GuardrailsReady says so. Or kubeop in the cluster is older.
		return nil
	case apierrors.IsForbidden(err):
		page.Title("Rules")
		page.Line("Your role does not show them.")
		return nil
	case err != nil:
		return fmt.Errorf("reading the rules that hold in namespace %s: %w", namespace, err)
	}
	if claimed := live.Spec.Hostnames; claimed != nil && len(claimed.Names) > 0 {
		page.Title("Host names")
		for _, name := range claimed.Names {
			page.Line(name)
		}
	}
	if held := live.Spec.PodSecurity; held != nil {
		page.Title("Pod Security")
		describeRule(page, "level "+held.Level, "", "version", []string{held.Version}, "by", held.Policies)
	}
	for _, of := range live.Spec.PodSecurityNotices {
		page.Title("Pod Security, %s only", of.Action)
		describeRule(page, "level "+of.Level, "", "version", []string{of.Version}, "by", of.Policies)
	}
	if guardrails.OwnNetworkPolicies(&live.Spec) {
		page.Title("What NetworkPolicies of apps may open")
		for _, line := range isolation.Lines(live.Spec.Network) {
			page.Line(line)
		}
	}
	describeAdded(page, live.Spec.Added)
	all := slices.Concat(live.Spec.Deny, live.Spec.Warn, live.Spec.Audit)
	slices.SortStableFunc(all, func(a, b v1alpha1.AppliedPolicy) int { return cmp.Compare(a.Policy, b.Policy) })
	last := ""
	for i := range all {
		if of := all[i].Policy; of != last {
			page.Title("Rules of %s", writtenIn(of))
			last = of
		}
		describeRules(page, &all[i].PolicyRules)
	}
	return nil
}

// writtenIn names where the rules of Guardrails are written.
func writtenIn(policy string) string {
	if policy == guardrails.TenantFile {
		return "the tenant's " + policy
	}
	return "policy " + policy
}

// describeRules shows the rules of a policy.
func describeRules(page *output.Page, rules *v1alpha1.PolicyRules) {
	if of := rules.Images; of != nil {
		describeRule(page, "images", of.Action, "allow", of.Allow, "deny", of.Deny, "", when(of.RequireDigest, "only by digest"), "pull policies", of.PullPolicies, "signed", signaturesOf(of.Verify))
	}
	if of := rules.Services; of != nil {
		describeRule(page, "services", of.Action, "types", of.Types, "load balancers", of.LoadBalancerClasses, "open to", of.LoadBalancerSourceRanges, "external names", of.ExternalNames,
			"external IPs", of.ExternalIPs, "node ports", guardrails.PortRanges(of.NodePorts))
	}
	if of := rules.Hostnames; of != nil {
		describeRule(page, "hostnames", of.Action, "in", of.Suffixes, "", when(of.Wildcards, "also with wildcards"))
	}
	if of := rules.Classes; of != nil {
		describeRule(page, "classes", of.Action, "storage", of.Storage, "volume attributes", of.VolumeAttributes, "ingress", of.Ingress, "gateway", of.Gateway, "priority", of.Priority, "runtime", of.Runtime, "defaults", classDefaults(of.Defaults))
	}
	if of := rules.Nodes; of != nil {
		var taints []string
		for _, toleration := range of.Tolerations {
			taints = append(taints, guardrails.ToleratedBy(toleration))
		}
		describeRule(page, "nodes", of.Action, "with", pairsOf(of.Selector), "tolerated taints", taints, "", when(of.UserNamespaces, "in user namespaces"))
	}
	if of := rules.Kinds; of != nil {
		describeRule(page, "kinds", of.Action, "allow", of.Allow, "deny", of.Deny)
	}
	if of := rules.Metadata; of != nil {
		describeRule(page, "metadata", of.Action, "required labels", of.RequiredLabels, "forbidden labels", of.ForbiddenLabels, "forbidden annotations", of.ForbiddenAnnotations)
	}
	if of := rules.Sources; of != nil {
		git, helm, oci := cmp.Or(of.Git, &v1alpha1.URLPatterns{}), cmp.Or(of.Helm, &v1alpha1.URLPatterns{}), cmp.Or(of.OCI, &v1alpha1.RepositoryPatterns{})
		describeRule(page, "sources", of.Action, "Git", git.Allow, "no Git", git.Deny, "Helm", helm.Allow, "no Helm", helm.Deny, "OCI", oci.Allow, "no OCI", oci.Deny)
	}
}

// classDefaults returns the classes of what names none, each as "runtime=gvisor".
func classDefaults(of *v1alpha1.ClassDefaults) (pairs []string) {
	if of == nil {
		return nil
	}
	for _, class := range [][2]string{{"ingress", of.Ingress}, {"gateway", of.Gateway}, {"priority", of.Priority}, {"runtime", of.Runtime}} {
		if class[1] != "" {
			pairs = append(pairs, class[0]+"="+class[1])
		}
	}
	return pairs
}

// describeAdded shows the labels and annotations that objects get.
func describeAdded(page *output.Page, of *v1alpha1.AddedMetadata) {
	if of != nil {
		describeRule(page, "added metadata", "", "labels", pairsOf(of.Labels), "annotations", pairsOf(of.Annotations))
	}
}

// pairsOf returns the entries of a map, each as "key=value", sorted.
func pairsOf[V ~string](of map[string]V) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		all = append(all, key+"="+string(of[key]))
	}
	return all
}

// signaturesOf names what has to be signed by how many keys and identities of which one is enough.
func signaturesOf(rules []v1alpha1.SignatureRule) (all []string) {
	for _, rule := range rules {
		by := slices.DeleteFunc([]string{countOf(len(rule.Keys), "key", "keys"), countOf(len(rule.Identities), "identity", "identities")}, func(s string) bool { return s == "" })
		all = append(all, strings.Join(rule.Images, " and ")+" by one of "+strings.Join(by, " and "))
	}
	return all
}

// countOf returns a number with its noun; "" for 0.
func countOf(n int, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// describeRule shows the rules about one subject, as pairs of what they limit and its values.
func describeRule(page *output.Page, of string, action v1alpha1.PolicyAction, pairs ...any) {
	cells := []string{of, string(action)}
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if values, _ := pairs[i+1].([]string); len(values) > 0 {
			cells = append(cells, strings.TrimSpace(name+" "+strings.Join(values, ", ")))
		}
	}
	page.Line(cells...)
}

// when returns words if they are true.
func when(is bool, words string) []string {
	if is {
		return []string{words}
	}
	return nil
}

// portsOf names ports, such as "443/TCP" and "8000-8999/UDP".
func portsOf(ports []v1alpha1.EgressPort) []string {
	var names []string
	for _, p := range ports {
		name := fmt.Sprint(p.Port)
		if p.EndPort > p.Port {
			name += fmt.Sprint("-", p.EndPort)
		}
		names = append(names, name+"/"+cmp.Or(p.Protocol, "TCP"))
	}
	return names
}

// amountsOf returns amounts of resources, each as "pods=50", sorted.
func amountsOf(list corev1.ResourceList) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		all = append(all, string(name)+"="+amount.String())
	}
	return all
}

// size returns the size of a claim; nothing without one.
func size(of *resource.Quantity) []string {
	if of == nil {
		return nil
	}
	return []string{of.String()}
}
