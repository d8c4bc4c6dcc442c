// Package v1alpha1 is kubeop's API: the kinds a platform team and its tenants write in Git.
//
// A field with omitempty is optional, and every other field is required; controller-gen needs no marker for either.
//
// +kubebuilder:object:generate=true
// +groupName=paas.kubeop.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "paas.kubeop.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKinds)

	// AddToScheme registers the kinds of this package.
	AddToScheme = schemeBuilder.AddToScheme
)

// Kinds of this group, as they are written in manifests.
const (
	RepositoryKind = "Repository"
	TenantKind     = "Tenant"
	ProjectKind    = "Project"
	AppKind        = "App"
	PolicyKind     = "Policy"
	GuardrailsKind = "Guardrails"

	HostnameClaimKind = "HostnameClaim"
	RegistryKind      = "Registry"
	PriceListKind     = "PriceList"
	ClusterKind       = "Cluster"
)

func addKinds(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Repository{}, &RepositoryList{}, &Tenant{}, &TenantList{}, &Project{}, &ProjectList{}, &App{}, &AppList{},
		&Policy{}, &PolicyList{}, &Guardrails{}, &GuardrailsList{}, &HostnameClaim{}, &HostnameClaimList{}, &Registry{}, &RegistryList{}, &PriceList{}, &PriceListList{},
		&Cluster{}, &ClusterList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
