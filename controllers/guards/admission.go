package guards

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Chart selects the admission policies of kubeop's chart and their bindings.
var Chart = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "kubeop"})

// Admission knows which admission policies of the chart the API server enforces: those that exist with their binding, as the chart installed them, of which
// the binding denies.
type Admission struct {
	// policies, and bound of mutating, say of what exists whether it is as the chart installed it.
	policies map[string]bool
	bindings map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	mutating *mutating
}

// mutating are the MutatingAdmissionPolicies of the chart and those that have their binding; nil if the API server does not serve the kind.
type mutating struct{ policies, bound map[string]bool }

// MutatingPolicyKind is served from Kubernetes 1.36.
var MutatingPolicyKind = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy")

// Read reads the policies and bindings of the chart. served: the API server serves MutatingAdmissionPolicies.
func Read(ctx context.Context, reader client.Reader, served bool) (*Admission, error) {
	policies := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	if err := reader.List(ctx, policies, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ValidatingAdmissionPolicies: %w", err)
	}
	bindings := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	if err := reader.List(ctx, bindings, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ValidatingAdmissionPolicyBindings: %w", err)
	}
	a := &Admission{policies: map[string]bool{}, bindings: map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{}}
	for i := range policies.Items {
		a.policies[policies.Items[i].Name] = unchanged(&policies.Items[i])
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Name == b.Spec.PolicyName {
			a.bindings[b.Name] = b
		}
	}
	if !served {
		return a, nil
	}
	var err error
	a.mutating, err = readMutating(ctx, reader)
	return a, err
}

func readMutating(ctx context.Context, reader client.Reader) (*mutating, error) {
	policies := &admissionregistrationv1.MutatingAdmissionPolicyList{}
	if err := reader.List(ctx, policies, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MutatingAdmissionPolicies: %w", err)
	}
	bindings := &admissionregistrationv1.MutatingAdmissionPolicyBindingList{}
	if err := reader.List(ctx, bindings, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MutatingAdmissionPolicyBindings: %w", err)
	}
	m := &mutating{policies: map[string]bool{}, bound: map[string]bool{}}
	for i := range policies.Items {
		m.policies[policies.Items[i].Name] = unchanged(&policies.Items[i])
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Name == b.Spec.PolicyName {
			m.bound[b.Name] = unchanged(b)
		}
	}
	return m, nil
}

// again says in a message who can install the chart's objects again.
const again = ": an administrator of the cluster installs the chart again"

// unwritten says why the API server does not write what a MutatingAdmissionPolicy writes; "" if it does.
func (a *Admission) unwritten(policy string) string {
	if a.mutating == nil {
		return "it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on"
	}
	for _, part := range []struct {
		kind string
		all  map[string]bool
	}{{"MutatingAdmissionPolicy", a.mutating.policies}, {"MutatingAdmissionPolicyBinding", a.mutating.bound}} {
		switch intact, exists := part.all[policy]; {
		case !exists:
			return fmt.Sprintf("%s %s does not exist"+again, part.kind, policy)
		case !intact:
			return fmt.Sprintf("somebody changed the spec of %s %s, or removed its digest"+again, part.kind, policy)
		}
	}
	return ""
}

// fault says why the API server does not refuse what a policy forbids; "" if it does.
func (a *Admission) fault(policy string) string {
	intact, exists := a.policies[policy]
	binding := a.bindings[policy]
	switch {
	case !exists:
		return fmt.Sprintf("ValidatingAdmissionPolicy %s does not exist", policy)
	case binding == nil:
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not exist", policy)
	case !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny):
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s has the actions %v, without Deny", policy, binding.Spec.ValidationActions)
	case !intact:
		return fmt.Sprintf("somebody changed the spec of ValidatingAdmissionPolicy %s, or removed its digest", policy)
	case !unchanged(binding):
		return fmt.Sprintf("somebody changed the spec of ValidatingAdmissionPolicyBinding %s, or removed its digest", policy)
	}
	return ""
}

// faults returns the faults of policies, without those that it does not have.
func (a *Admission) faults(policies ...string) (all []string) {
	for _, policy := range policies {
		if fault := a.fault(policy); fault != "" {
			all = append(all, fault)
		}
	}
	return all
}

// Changed passes policies and bindings of the chart that appear or go, and those that somebody changed or that are as the chart installed them again.
var Changed = predicate.And(
	predicate.NewPredicateFuncs(func(o client.Object) bool { return Chart.Matches(labels.Set(o.GetLabels())) }),
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if unchanged(e.ObjectOld) != unchanged(e.ObjectNew) {
			return true
		}
		was, _ := e.ObjectOld.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		is, _ := e.ObjectNew.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		return was != nil && is != nil && !slices.Equal(was.Spec.ValidationActions, is.Spec.ValidationActions)
	}},
)
