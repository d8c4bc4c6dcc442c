package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// TenantLimits bound what a tenant makes the platform keep and work on. What is over a limit is refused by itself: the new project,
// the file, the app, the fetch. Nothing that is there is taken away, also where a limit is lowered. The defaults are those of
// package delivery/budget.
type TenantLimits struct {
	// Projects is how many the tenant may have. Default 50.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Projects *int32 `json:"projects,omitempty"`

	// Apps is how many all its projects may have together. Default 500.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +optional
	Apps *int32 `json:"apps,omitempty"`

	// TreeBytes is how large the files project.yaml and app.yaml of the tenant may be together, those in Git and the objects that
	// were made of them. Each counts as 1Ki at least, and with its YAML aliases written out. Default 8Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('1Gi')) <= 0",message="treeBytes must be between 64Ki and 1Gi"
	// +optional
	TreeBytes *resource.Quantity `json:"treeBytes,omitempty"`

	// AppObjects is how many objects one app may hold. Default 5000, which is also the most: an inventory of more does not fit into
	// a status.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	// +optional
	AppObjects *int32 `json:"appObjects,omitempty"`

	// AppBytes is how large the manifests of one app may be together: as they are read, and as they are rendered. Default 8Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('16Mi')) <= 0",message="appBytes must be between 64Ki and 16Mi"
	// +optional
	AppBytes *resource.Quantity `json:"appBytes,omitempty"`

	// AppValues is how many mappings, lists and scalars of YAML the manifests of one app may hold together; each takes some hundred
	// bytes of memory where it is read. Default 500000.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=5000000
	// +optional
	AppValues *int32 `json:"appValues,omitempty"`

	// SourceBytes is how much of what the tenant's apps are made from (Git objects, charts, artifacts) is kept on the operator's disk
	// at once. Default 2Gi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('3Gi')) <= 0",message="sourceBytes must be between 1Mi and 3Gi"
	// +optional
	SourceBytes *resource.Quantity `json:"sourceBytes,omitempty"`

	// PackBytes is what the Git objects of one fetch may inflate to together, those of its own Repository and those of its apps' sources:
	// a few kilobytes can stand for gigabytes, and inflating these takes the operator's processor. Default 1Gi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('16Mi')) >= 0 && quantity(string(self)).compareTo(quantity('4Gi')) <= 0",message="packBytes must be between 16Mi and 4Gi"
	// +optional
	PackBytes *resource.Quantity `json:"packBytes,omitempty"`

	// RenderedBytes is how large what all its apps deliver may be together, as rendered. Of a Helm app its release counts five times,
	// too, because so many records of it are kept; and of a workload whose pod's template is larger than 16Ki the rest of that counts
	// sixty times, because Kubernetes copies it into old revisions and pods. Default 64Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('64Ki')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0",message="renderedBytes must be between 64Ki and 64Gi"
	// +optional
	RenderedBytes *resource.Quantity `json:"renderedBytes,omitempty"`

	// StoreBytes is how much the objects in its namespaces may take in the API server's store. Each object that quotas count counts as
	// large as one of its kind may be that is written past Git: a ConfigMap or Secret spec.maxObjectSize, a workload half of that, any
	// other a quarter. Where more than half of it is taken, the quota of each project lets no more be made than the rest holds.
	// Default 96Mi.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('64Gi')) <= 0",message="storeBytes must be between 1Mi and 64Gi"
	// +optional
	StoreBytes *resource.Quantity `json:"storeBytes,omitempty"`
}
