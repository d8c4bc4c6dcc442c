package access

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// AccountPrefix begins the names of the service accounts in the namespace of a project as which people act by kubeconfigs of the management API. The
// role follows.
const AccountPrefix = "kubeop-access-"

// OfPeople reports whether a subject of a binding in a namespace is one of these accounts, or includes them: then people have its rights besides those of
// their role.
func OfPeople(kind, name, namespace string) bool {
	if kind == rbacv1.ServiceAccountKind {
		return strings.HasPrefix(name, AccountPrefix)
	}
	return name == "system:serviceaccounts:"+namespace || strings.HasPrefix(name, "system:serviceaccount:"+namespace+":"+AccountPrefix)
}
