package project

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/guardrails"
)

// rules are those of the policies that a project is under, set by resolve.
type rules struct {
	// policies are those that the tenant is under, and missing the names for which there is none.
	policies []v1alpha1.Policy
	missing  []string
	// spec are the rules that hold. If a policy is missing, they are those that held before, if there were any.
	spec v1alpha1.GuardrailsSpec
	// contradictions are those of the policies about the labels and annotations that objects get.
	contradictions []string
	// written: there were rules before, and listed are the host names in them.
	written bool
	listed  *v1alpha1.ClaimedHostnames
	// opened is what NetworkPolicies of apps could open before; nil for none.
	opened *v1alpha1.AllowedNetwork
}

// findRules finds the rules of the policies that the tenant is under. If one of the policies does not exist, the rules stay as they are, because
// fewer rules would allow more.
func (r *Reconciler) findRules(ctx context.Context, s *scope) error {
	policies := &v1alpha1.PolicyList{}
	if err := r.Client.List(ctx, policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the policies: %w", err)
	}
	live := &v1alpha1.Guardrails{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: v1alpha1.GuardrailsName}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the guardrails of namespace %s: %w", s.namespace, err)
	}
	selected, missing := guardrails.Select(s.tenant, policies.Items)
	s.rules = rules{policies: selected, missing: missing, spec: guardrails.For(s.tenant, selected), written: err == nil, listed: live.Spec.Hostnames, opened: live.Spec.Network}
	guardrails.InProject(&s.rules.spec, s.project.Spec.Limits)
	_, s.rules.contradictions = guardrails.Added(selected)
	if len(missing) > 0 && s.rules.written {
		s.rules.spec = live.Spec
		s.rules.spec.Signed = nil // Package signed writes them.
	}
	return nil
}

// enforce writes the Guardrails of the namespace: the rules of the policies that the tenant is under, its domains, and the host names that the project has.
// While a policy is missing, it writes no new ones.
func (r *Reconciler) enforce(ctx context.Context, s *scope) error {
	if len(s.rules.missing) > 0 && !s.rules.written {
		return nil
	}
	s.rules.spec.Network = s.network.allowed
	err := r.writeGuardrails(ctx, s, s.rules.spec, s.rules.listed)
	r.askAgain(s) // Also after an error: the API server may have written them.
	return err
}

// writeGuardrails writes rules with the host names that the project has; listed are the names so far.
func (r *Reconciler) writeGuardrails(ctx context.Context, s *scope, spec v1alpha1.GuardrailsSpec, listed *v1alpha1.ClaimedHostnames) error {
	names, again, err := r.Hosts.Names(ctx, s.hosts(listed))
	if err != nil {
		return err
	}
	s.again, spec.Hostnames = again, &v1alpha1.ClaimedHostnames{Names: names}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return fmt.Errorf("encoding the guardrails: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GuardrailsKind))
	object.SetName(v1alpha1.GuardrailsName)
	object.SetNamespace(s.namespace)
	labels := guardrails.Labels(content)
	maps.Copy(labels, s.labels())
	object.SetLabels(labels)
	return step.Refused(v1alpha1.ApplyFailedReason, s.made.Apply(ctx, object), apply.ErrForeign)
}

// hosts is the project for its host names.
func (s *scope) hosts(listed *v1alpha1.ClaimedHostnames) hostclaims.Project {
	return hostclaims.Project{Tenant: tenantOf(s.project), Name: s.project.Name, Namespace: s.namespace, Listed: listed}
}
