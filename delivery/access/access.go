// Package access binds people and the deployer to the roles that the chart installs.
package access

import (
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const rbacGroup = "rbac.authorization.k8s.io"

// roles are the roles an owner can have; each is a ClusterRole "kubeop-<role>" of the chart.
var roles = []string{"view", "edit", "admin"}

// Bindings binds the owners to their roles in a namespace: one binding for each role that an owner has. It also returns the bindings of the
// roles that nobody has, which must not exist.
func Bindings(namespace string, labels map[string]string, owners []v1alpha1.Owner) (wanted, unwanted []any) {
	for _, role := range roles {
		binding := bind(namespace, "kubeop-"+role, labels)
		if subjects := Subjects(owners, role); len(subjects) > 0 {
			wanted = append(wanted, binding.WithSubjects(subjects...))
		} else {
			unwanted = append(unwanted, binding)
		}
	}
	return wanted, unwanted
}

// Deployer returns the binding of the service account with which a project's apps are delivered. The role is a ClusterRole so that
// administrators can extend it by aggregation; the binding limits it to the namespace.
func Deployer(namespace string, labels map[string]string) *rbac.RoleBindingApplyConfiguration {
	subject := rbac.Subject().WithKind("ServiceAccount").WithName(v1alpha1.Deployer).WithNamespace(namespace)
	return bind(namespace, v1alpha1.Deployer, labels).WithSubjects(subject)
}

// NetworkPolicies returns the binding with which the apps of a project may have NetworkPolicies.
func NetworkPolicies(namespace string, labels map[string]string) *rbac.RoleBindingApplyConfiguration {
	subject := rbac.Subject().WithKind("ServiceAccount").WithName(v1alpha1.Deployer).WithNamespace(namespace)
	return bind(namespace, v1alpha1.Deployer+"-network-policies", labels).WithSubjects(subject)
}

// Platform returns the binding of the service account in the operator's namespace with which the apps of the platform itself are delivered.
// The binding has the name of Deployer's, so that the namespace of every project has a binding of that name.
func Platform(namespace, operator string, labels map[string]string) *rbac.RoleBindingApplyConfiguration {
	subject := rbac.Subject().WithKind("ServiceAccount").WithName(v1alpha1.PlatformDeployer).WithNamespace(operator)
	ref := rbac.RoleRef().WithAPIGroup(rbacGroup).WithKind("ClusterRole").WithName(v1alpha1.PlatformDeployer)
	return rbac.RoleBinding(v1alpha1.Deployer, namespace).WithLabels(labels).WithRoleRef(ref).WithSubjects(subject)
}

// Cluster binds the service account with which a namespace's apps are delivered to the named ClusterRole, in the whole cluster.
func Cluster(name, namespace string, labels map[string]string) *rbac.ClusterRoleBindingApplyConfiguration {
	subject := rbac.Subject().WithKind("ServiceAccount").WithName(v1alpha1.Deployer).WithNamespace(namespace)
	ref := rbac.RoleRef().WithAPIGroup(rbacGroup).WithKind("ClusterRole").WithName(name)
	return rbac.ClusterRoleBinding(name).WithLabels(labels).WithRoleRef(ref).WithSubjects(subject)
}

// Subjects returns the owners that have a role, or all of them for "".
func Subjects(owners []v1alpha1.Owner, role string) []*rbac.SubjectApplyConfiguration {
	subjects := []*rbac.SubjectApplyConfiguration{}
	for _, o := range owners {
		if role == "" || o.Role == role || (o.Role == "" && role == "view") {
			subjects = append(subjects, rbac.Subject().WithKind(o.Kind).WithName(o.Name).WithAPIGroup(rbacGroup))
		}
	}
	return subjects
}

// bind returns the binding of a namespace to the ClusterRole of the same name.
func bind(namespace, name string, labels map[string]string) *rbac.RoleBindingApplyConfiguration {
	ref := rbac.RoleRef().WithAPIGroup(rbacGroup).WithKind("ClusterRole").WithName(name)
	return rbac.RoleBinding(name, namespace).WithLabels(labels).WithRoleRef(ref)
}
