// Package flow writes the FlowSchemas by which the API server gives each tenant its own turn (API Priority and Fairness, KEP-1040).
//
// A FlowSchema names service accounts by their namespace, without patterns, so that there is no way to distinguish tenants' accounts from
// others by one for all. Each tenant has two: a flow is a FlowSchema, so that all accounts of a tenant wait in line together,
// however many there are.
package flow

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrol "k8s.io/client-go/applyconfigurations/flowcontrol/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The priority levels of the chart: what kubeop does, as itself and as the deployers of projects, and what tenants' own accounts do.
const (
	operatorLevel = "kubeop"
	tenantsLevel  = "kubeop-tenants"
)

// A request is of the first FlowSchema that matches it, in this order; those of the chart come before, Kubernetes' own for all
// service accounts, 9000, after.
const (
	deployersPrecedence = 1000
	accountsPrecedence  = 1100
)

// anyAccount stands for every account of a namespace.
const anyAccount = flowcontrolv1.NameAll

type schema = flowcontrol.FlowSchemaApplyConfiguration

// Schemas returns the FlowSchemas of a tenant, given the namespaces of its projects: one for their deployers, as which kubeop
// delivers, and one for all other accounts. A tenant without projects has none.
func Schemas(tenant string, labels map[string]string, namespaces []string) []*schema {
	if len(namespaces) == 0 {
		return nil
	}
	names := Names(tenant)
	return []*schema{
		named(names[0], labels).WithSpec(of(operatorLevel, deployersPrecedence, v1alpha1.Deployer, namespaces)),
		named(names[1], labels).WithSpec(of(tenantsLevel, accountsPrecedence, anyAccount, namespaces)),
	}
}

// Names are the names of a tenant's FlowSchemas.
func Names(tenant string) [2]string {
	return [2]string{"kubeop-deployers-" + tenant, "kubeop-tenant-" + tenant}
}

func named(name string, labels map[string]string) *schema {
	return flowcontrol.FlowSchema(name).WithLabels(labels)
}

// of has every request of an account of that name, in each of the namespaces, be of a level.
func of(level string, precedence int32, account string, namespaces []string) *flowcontrol.FlowSchemaSpecApplyConfiguration {
	rule := flowcontrol.PolicyRulesWithSubjects().
		WithResourceRules(flowcontrol.ResourcePolicyRule().WithVerbs(flowcontrolv1.VerbAll).WithAPIGroups(flowcontrolv1.APIGroupAll).
			WithResources(flowcontrolv1.ResourceAll).WithNamespaces(flowcontrolv1.NamespaceEvery).WithClusterScope(true)).
		WithNonResourceRules(flowcontrol.NonResourcePolicyRule().WithVerbs(flowcontrolv1.VerbAll).WithNonResourceURLs(flowcontrolv1.NonResourceAll))
	for _, namespace := range namespaces {
		rule.WithSubjects(flowcontrol.Subject().WithKind(flowcontrolv1.SubjectKindServiceAccount).
			WithServiceAccount(flowcontrol.ServiceAccountSubject().WithNamespace(namespace).WithName(account)))
	}
	return flowcontrol.FlowSchemaSpec().WithMatchingPrecedence(precedence).WithRules(rule).
		WithPriorityLevelConfiguration(flowcontrol.PriorityLevelConfigurationReference().WithName(level))
}
