package access

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/applyconfigurations/core/v1"
	rbac "k8s.io/client-go/applyconfigurations/rbac/v1"
)

// AccountPrefix begins the names of the service accounts in the namespace of a project as which people act by kubeconfigs of the management API. The
// role follows.
const AccountPrefix = "kubeop-access-"

// managerRole is the ClusterRole of the chart with which the manager gets tokens of these accounts, and of the binding to it in each project.
const managerRole = "kubeop-manager-kubeconfigs"

// People returns the service accounts as which people act by kubeconfigs in the namespace of a project: one for each role, with a binding to it, and
// the binding that lets the account of the manager get tokens for them. Their tokens are mounted nowhere.
func People(namespace string, labels map[string]string, manager types.NamespacedName) (all []any) {
	for _, role := range roles {
		name := AccountPrefix + role
		ref := rbac.RoleRef().WithAPIGroup(rbacGroup).WithKind("ClusterRole").WithName("kubeop-" + role)
		subject := rbac.Subject().WithKind("ServiceAccount").WithName(name).WithNamespace(namespace)
		all = append(all,
			core.ServiceAccount(name, namespace).WithLabels(labels).WithAutomountServiceAccountToken(false),
			rbac.RoleBinding(name, namespace).WithLabels(labels).WithRoleRef(ref).WithSubjects(subject))
	}
	return append(all, bind(namespace, managerRole, labels).
		WithSubjects(rbac.Subject().WithKind("ServiceAccount").WithName(manager.Name).WithNamespace(manager.Namespace)))
}

// OfPeople reports whether a subject of a binding in a namespace is one of the accounts of People, or includes them: then people have its rights besides
// those of their role.
func OfPeople(kind, name, namespace string) bool {
	if kind == rbacv1.ServiceAccountKind {
		return strings.HasPrefix(name, AccountPrefix)
	}
	return name == "system:serviceaccounts:"+namespace || strings.HasPrefix(name, "system:serviceaccount:"+namespace+":"+AccountPrefix)
}
