// Package opened reads cases of NetworkPolicies that a project may have or not.
package opened

import (
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Case is a NetworkPolicy.
type Case struct {
	Name   string
	Policy *networkingv1.NetworkPolicy
	// Refused is a part of the message that refuses it; "" if it is allowed.
	Refused string
	// Completed are the exceptions that its ipBlock gets when it is narrowed.
	Completed []string
}

// written is a case as the file has it: a rule, or the whole spec.
type written struct {
	Spec      *networkingv1.NetworkPolicySpec        `json:"spec,omitempty"`
	Ingress   *networkingv1.NetworkPolicyIngressRule `json:"ingress,omitempty"`
	Egress    *networkingv1.NetworkPolicyEgressRule  `json:"egress,omitempty"`
	Refused   string                                 `json:"refused,omitempty"`
	Completed []string                               `json:"completed,omitempty"`
}

// Read reads a file of cases, and what the project may have.
func Read(t testing.TB, file string) (*v1alpha1.AllowedNetwork, []Case) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		Network v1alpha1.AllowedNetwork `json:"network"`
		Cases   []written               `json:"cases"`
	}
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		t.Fatal(err)
	}
	var all []Case
	for _, w := range content.Cases {
		c := Case{Policy: &networkingv1.NetworkPolicy{}, Refused: w.Refused, Completed: w.Completed}
		c.Policy.Name = "x"
		switch {
		case w.Spec != nil:
			c.Policy.Spec = *w.Spec
		case w.Ingress != nil:
			c.Policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{*w.Ingress}
		case w.Egress != nil:
			c.Policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
			c.Policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{*w.Egress}
		}
		name, err := json.Marshal(c.Policy.Spec)
		if err != nil {
			t.Fatal(err)
		}
		c.Name = strings.ReplaceAll(string(name), "kubernetes.io/metadata.name", "name")
		all = append(all, c)
	}
	return &content.Network, all
}
