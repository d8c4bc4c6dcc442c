package kube

import (
	"errors"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// What PlatformApps can be: the setting platformApps of the chart, from which the rights of v1alpha1.PlatformDeployer follow.
const (
	// PlatformAppsOff delivers no apps of the platform itself.
	PlatformAppsOff = "Off"
	// PlatformAppsNamespaced delivers apps of the platform itself only into the namespaces of their projects.
	PlatformAppsNamespaced = "Namespaced"
	// PlatformAppsClusterAdmin allows apps of the platform itself cluster-scoped objects, and objects in other namespaces.
	PlatformAppsClusterAdmin = "ClusterAdmin"
)

// ErrPlatformOff says that apps of the platform itself are not delivered.
var ErrPlatformOff = errors.New("apps of the platform itself are turned off, and what runs stays as it is: ask an administrator of the cluster to set Namespaced or ClusterAdmin as platformApps of the values of kubeop's chart")

// Deployers are the accounts that kubeop impersonates to deliver apps.
type Deployers struct {
	// PlatformApps is one of the constants above; "" means Off.
	PlatformApps string
	// Operator is the operator's namespace, which has the account that delivers the apps of the platform itself.
	Operator string
}

// Platform reports whether apps of the platform itself are delivered.
func (d Deployers) Platform() bool { return d.PlatformApps != "" && d.PlatformApps != PlatformAppsOff }

// Of returns the user name of the deployer of a project's namespace: the account in the namespace itself, or for projects of the platform the
// platform's.
func (d Deployers) Of(namespace string) string {
	if d.Platform() && v1alpha1.TenantOf(namespace) == v1alpha1.PlatformTenant {
		return "system:serviceaccount:" + d.Operator + ":" + v1alpha1.PlatformDeployer
	}
	return "system:serviceaccount:" + namespace + ":" + v1alpha1.Deployer
}
