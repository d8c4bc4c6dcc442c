package wake

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Delivering maps an object to the App that delivers the object. Outside of the namespaces of tenants, who may write the label of any tenant, an object can
// be of an App of the platform that is in another namespace.
func Delivering(_ context.Context, o client.Object) []reconcile.Request {
	labels, namespace := o.GetLabels(), o.GetNamespace()
	name := labels[v1alpha1.AppLabel]
	if name == "" {
		return nil
	}
	tenant := v1alpha1.TenantOf(namespace)
	ofPlatform := labels[v1alpha1.TenantLabel] == v1alpha1.PlatformTenant && (tenant == "" || tenant == v1alpha1.PlatformTenant)
	if namespace == "" || ofPlatform {
		namespace = v1alpha1.ProjectNamespace(labels[v1alpha1.TenantLabel], labels[v1alpha1.ProjectLabel])
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Requests returns the requests to reconcile Apps.
func Requests(apps []types.NamespacedName) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(apps))
	for _, app := range apps {
		requests = append(requests, reconcile.Request{NamespacedName: app})
	}
	return requests
}
