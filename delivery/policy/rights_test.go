package policy

import (
	"errors"
	"testing"
)

func TestARoleThatGrantsTooMuchSaysWhoMayAllowIt(t *testing.T) {
	refused := errors.New(`Role/web: roles.rbac.authorization.k8s.io "web" is forbidden: user "d" is attempting to grant RBAC permissions not currently held: {APIGroups:[""], Resources:["events"], Verbs:["create"]}`)
	const want = `; an app's role can grant only what kubeop-deployer has: take these rules out, or ask an administrator of the cluster to allow them ` +
		`to the apps of all tenants, with a ClusterRole that has these rules and the label paas.kubeop.io/aggregate-to-deployer: "true", or to deliver this app from platform/ of the platform repository`
	if got := Ungranted(refused); got.Error() != refused.Error()+want || !errors.Is(got, refused) {
		t.Errorf("got %v", got)
	}
	other := errors.New("down")
	if got := Ungranted(other); got != other { //nolint:errorlint // the same error
		t.Errorf("another error became %v", got)
	}
	if Ungranted(nil) != nil {
		t.Error("nothing became an error")
	}
}
