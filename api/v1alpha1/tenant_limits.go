package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// TenantLimits limit how much of the platform's resources a tenant may use. kubeop rejects only what exceeds a limit: the new
// project, the file, the app or the fetch. Existing objects are kept, even after a limit was lowered. Package delivery/budget defines
// the defaults.
type TenantLimits struct {
	// Projects is the maximum number of projects of the tenant. Default 50.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Projects *int32 `json:"projects,omitempty"`
	// Apps is the maximum number of apps in all projects together. Default 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Apps *int32 `json:"apps,omitempty"`
	// TreeBytes is the maximum total size of the tenant's project.yaml and app.yaml files, in Git and as objects. Each file counts as at
	// least 1Ki, and with its YAML aliases expanded. Default 8Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Gi')) <= 0",message="treeBytes must be between 64Ki and 1Gi"
	TreeBytes *resource.Quantity `json:"treeBytes,omitempty"`
	// AppObjects is the maximum number of objects of one app. Default 5000, which is also the upper bound: a larger inventory does not
	// fit into a status.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	AppObjects *int32 `json:"appObjects,omitempty"`
	// AppBytes is the maximum total size of one app's manifests, both before and after rendering. Default 8Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('16Mi')) <= 0",message="appBytes must be between 64Ki and 16Mi"
	AppBytes *resource.Quantity `json:"appBytes,omitempty"`
	// AppValues is the maximum number of YAML mappings, lists and scalars in all manifests of one app. Each takes about a hundred bytes
	// of memory when parsed. Default 500000.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=5000000
	AppValues *int32 `json:"appValues,omitempty"`
	// SourceBytes is the maximum size of the sources of the tenant's apps (Git objects, charts, artifacts) on the operator's disk.
	// Default 2Gi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('3Gi')) <= 0",message="sourceBytes must be between 1Mi and 3Gi"
	SourceBytes *resource.Quantity `json:"sourceBytes,omitempty"`
	// PackBytes is the maximum inflated size of the Git objects of one fetch. It is for the tenant's Repository and for its apps'
	// sources. A few kilobytes can inflate to gigabytes, which takes the operator's processor time. Default 1Gi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('4Gi')) <= 0",message="packBytes must be between 16Mi and 4Gi"
	PackBytes *resource.Quantity `json:"packBytes,omitempty"`
	// RenderedBytes is the maximum total size of what all its apps deliver, as rendered. A Helm app's release counts five more times,
	// because Helm keeps that many records. If a workload's pod template exceeds 16Ki, the excess counts sixty times, because Kubernetes
	// copies it into old revisions and pods. Default 64Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0",message="renderedBytes must be between 64Ki and 64Gi"
	RenderedBytes *resource.Quantity `json:"renderedBytes,omitempty"`
	// StoreBytes is the maximum total size of the objects in its namespaces in the API server's store. Objects that quotas count are
	// assumed to have the maximum size that is allowed outside Git. That is spec.maxObjectSize for a ConfigMap or Secret, half of it for
	// a workload, and a quarter for other kinds. Once more than half is used, each project's quota allows no more objects than fit into
	// the rest. Default 96Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0",message="storeBytes must be between 1Mi and 64Gi"
	StoreBytes *resource.Quantity `json:"storeBytes,omitempty"`
}
