package guards

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Chart selects the admission policies of kubeop's chart and their bindings.
var Chart = labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "kubeop"})

// Admission knows which admission policies of the chart the API server enforces. It knows that a policy and its binding exist and what the binding does
// with a refusal, not whether somebody changed their rules.
type Admission struct {
	policies map[string]bool
	actions  map[string][]admissionregistrationv1.ValidationAction
	mutating *mutating
}

// mutating are the MutatingAdmissionPolicies of the chart and those that have their binding; nil if the API server does not serve the kind.
type mutating struct{ policies, bound map[string]bool }

// MutatingPolicyKind is served from Kubernetes 1.36.
var MutatingPolicyKind = admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy")

// NewPolicy returns an empty ValidatingAdmissionPolicy, of which only the metadata are read.
func NewPolicy() *metav1.PartialObjectMetadata {
	policy := &metav1.PartialObjectMetadata{}
	policy.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))
	return policy
}

// NewMutatingPolicy returns an empty MutatingAdmissionPolicy, of which only the metadata are read.
func NewMutatingPolicy() *metav1.PartialObjectMetadata {
	policy := &metav1.PartialObjectMetadata{}
	policy.SetGroupVersionKind(MutatingPolicyKind)
	return policy
}

// Read reads the policies and bindings of the chart. served: the API server serves MutatingAdmissionPolicies.
func Read(ctx context.Context, reader client.Reader, served bool) (*Admission, error) {
	policies := &metav1.PartialObjectMetadataList{}
	policies.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyList"))
	if err := reader.List(ctx, policies, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ValidatingAdmissionPolicies: %w", err)
	}
	bindings := &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}
	if err := reader.List(ctx, bindings, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ValidatingAdmissionPolicyBindings: %w", err)
	}
	a := &Admission{policies: map[string]bool{}, actions: map[string][]admissionregistrationv1.ValidationAction{}}
	for i := range policies.Items {
		a.policies[policies.Items[i].Name] = true
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if b.Name == b.Spec.PolicyName {
			a.actions[b.Name] = b.Spec.ValidationActions
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
	policies := &metav1.PartialObjectMetadataList{}
	policies.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyList"))
	if err := reader.List(ctx, policies, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MutatingAdmissionPolicies: %w", err)
	}
	bindings := &admissionregistrationv1.MutatingAdmissionPolicyBindingList{}
	if err := reader.List(ctx, bindings, client.MatchingLabelsSelector{Selector: Chart}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the MutatingAdmissionPolicyBindings: %w", err)
	}
	m := &mutating{policies: map[string]bool{}, bound: map[string]bool{}}
	for i := range policies.Items {
		m.policies[policies.Items[i].Name] = true
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Name == b.Spec.PolicyName {
			m.bound[b.Name] = true
		}
	}
	return m, nil
}

// unwritten says why the API server does not write what a MutatingAdmissionPolicy writes; "" if it does.
func (a *Admission) unwritten(policy string) string {
	switch {
	case a.mutating == nil:
		return "it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on"
	case !a.mutating.policies[policy]:
		return fmt.Sprintf("MutatingAdmissionPolicy %s does not exist: an administrator of the cluster installs the chart again", policy)
	case !a.mutating.bound[policy]:
		return fmt.Sprintf("MutatingAdmissionPolicyBinding %s does not exist: an administrator of the cluster installs the chart again", policy)
	}
	return ""
}

// fault says why the API server does not refuse what a policy forbids; "" if it does.
func (a *Admission) fault(policy string) string {
	actions, bound := a.actions[policy]
	switch {
	case !a.policies[policy]:
		return fmt.Sprintf("ValidatingAdmissionPolicy %s does not exist", policy)
	case !bound:
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s does not exist", policy)
	case !slices.Contains(actions, admissionregistrationv1.Deny):
		return fmt.Sprintf("ValidatingAdmissionPolicyBinding %s has the actions %v, without Deny", policy, actions)
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

// Changed passes policies and bindings of the chart that appear or go, and bindings that do something else with a refusal.
var Changed = predicate.And(
	predicate.NewPredicateFuncs(func(o client.Object) bool { return Chart.Matches(labels.Set(o.GetLabels())) }),
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, _ := e.ObjectOld.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		is, _ := e.ObjectNew.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		return was != nil && is != nil && !slices.Equal(was.Spec.ValidationActions, is.Spec.ValidationActions)
	}},
)
