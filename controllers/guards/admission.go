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
}

// NewPolicy returns an empty ValidatingAdmissionPolicy, of which only the metadata are read.
func NewPolicy() *metav1.PartialObjectMetadata {
	policy := &metav1.PartialObjectMetadata{}
	policy.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))
	return policy
}

// Read reads the policies and bindings of the chart.
func Read(ctx context.Context, reader client.Reader) (*Admission, error) {
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
	return a, nil
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
