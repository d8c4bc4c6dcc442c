// Package flow writes the FlowSchemas by which the API server gives each tenant a fair share (API Priority and Fairness, KEP-1040).
//
// A FlowSchema names service accounts by their namespace, and allows no patterns, so one FlowSchema cannot separate tenants. Each tenant
// has two. A flow is a FlowSchema, so all accounts of a tenant share one queue, however many accounts there are.
package flow

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrol "k8s.io/client-go/applyconfigurations/flowcontrol/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// The priority levels of the chart: for kubeop itself and the deployers of projects, and for the tenants' own accounts.
const (
	operatorLevel = "kubeop"
	tenantsLevel  = "kubeop-tenants"
)

// The precedence of the FlowSchemas: a request belongs to the first one that matches. Those of the chart come before them; Kubernetes' own
// for all service accounts (9000) comes after them.
const (
	deployersPrecedence = 1000
	accountsPrecedence  = 1100
)

// anyAccount stands for every account of a namespace.
const anyAccount = flowcontrolv1.NameAll

type schema = flowcontrol.FlowSchemaApplyConfiguration

// Schemas returns the FlowSchemas of a tenant with projects in the namespaces: one for the deployers, which kubeop impersonates, and one
// for all other accounts. A tenant without projects has none.
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

// of returns the spec that assigns every request of the named account, in each of the namespaces, to a priority level.
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
