package v1alpha1

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantSpec is what administrators decide about a tenant. It is read from the platform repository only.
type TenantSpec struct {
	// Owners are the people and groups who may look into the tenant's namespaces.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Owners []Owner `json:"owners,omitempty"`

	// Repository binds the tenant's own Git repository. Without it the tenant's projects live beside tenant.yaml.
	// +optional
	Repository *TenantRepository `json:"repository,omitempty"`

	// PodSecurity is the Pod Security level enforced in the tenant's projects. Default restricted.
	// +kubebuilder:validation:Enum=restricted;baseline
	// +kubebuilder:default=restricted
	// +optional
	PodSecurity string `json:"podSecurity,omitempty"`

	// Quota is the most that each of the tenant's projects may ask for, as in a ResourceQuota. What is not named is bounded
	// by the default of a project's quota.
	// +optional
	Quota corev1.ResourceList `json:"quota,omitempty"`

	// HomeQuota is the most that the tenant's home namespace holds, as in a ResourceQuota. What is not named keeps its default:
	// count/secrets 100, and 50 objects of each other kind that apps may hold.
	// +optional
	HomeQuota corev1.ResourceList `json:"homeQuota,omitempty"`

	// MaxObjectSize is the most that a ConfigMap or Secret may have which the tenant's people and the accounts of its apps write
	// past Git; a workload may have half as much, any other object a quarter. What is delivered from Git is bounded elsewhere.
	// The size is that of the object as text, with what the API server adds. Default 32Ki.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('4Ki')) >= 0 && quantity(string(self)).compareTo(quantity('3Mi')) <= 0",message="maxObjectSize must be between 4Ki and 3Mi"
	// +optional
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`

	// MaxTerminationGracePeriod is the most that terminationGracePeriodSeconds of a pod may be, and how long pods are waited for
	// when a project is deleted. Default 1h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('168h')",message="maxTerminationGracePeriod must be between 30s and 168h"
	// +optional
	MaxTerminationGracePeriod *metav1.Duration `json:"maxTerminationGracePeriod,omitempty"`

	// PriorityClasses are the names of the PriorityClasses that its pods may have: with a higher priority than others they push
	// the pods of others off their nodes. Default: none but the one that the cluster gives to every pod without.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(c, !c.startsWith('system-'))",message="priority classes that start with system- are Kubernetes' own"
	// +listType=set
	// +optional
	PriorityClasses []string `json:"priorityClasses,omitempty"`

	// Egress are the address ranges outside the cluster that the tenant's pods may connect to. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="every entry of egress must be a CIDR, such as 203.0.113.0/24"
	// +listType=set
	// +optional
	Egress []string `json:"egress,omitempty"`

	// ClusterKinds are cluster-scoped kinds that the tenant's apps may hold, each as "<Kind>.<group>", such as
	// "CustomResourceDefinition.apiextensions.k8s.io". Every object of such a kind is everybody's: who gets one is trusted
	// with the cluster. Kinds of RBAC, of the core group and of kubeop itself are never allowed. The operator can hand out
	// only what a ClusterRole labelled paas.kubeop.io/aggregate-to-cluster-kinds gives it. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('.rbac.authorization.k8s.io') && !k.endsWith('paas.kubeop.io'))",message="clusterKinds must not hold kinds of RBAC or of kubeop"
	// +listType=set
	// +optional
	ClusterKinds []string `json:"clusterKinds,omitempty"`

	// Weight is how many turns the tenant has for one of another's wherever tenants wait for the same thing: workers, fetches, builds,
	// Helm actions. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=1
	// +optional
	Weight int32 `json:"weight,omitempty"`

	// Limits are how much the tenant may declare, and how large its apps and sources may be. What is not set has the default that
	// administrators give all tenants, tenantLimits in the values of the chart. See TenantLimits.
	// +optional
	Limits TenantLimits `json:"limits,omitzero"`

	// DeletionPolicy says what becomes of the tenant's namespaces when the tenant is deleted. Default Delete.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// ClaimDeletionPolicy says what becomes of claims that hold data when the tenant is deleted: Retain or Delete. Default: Retain.
	// +optional
	ClaimDeletionPolicy ClaimDeletionPolicy `json:"claimDeletionPolicy,omitempty"`

	Schedule `json:",inline"`
}

// Owner is a person or group with a role in every namespace of a tenant.
type Owner struct {
	// Kind of the subject, as the API server authenticates it.
	// +kubebuilder:validation:Enum=User;Group
	Kind string `json:"kind"`
	// Name of the user or group. Names that start with "system:" belong to Kubernetes and are refused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="names that start with system: belong to Kubernetes"
	Name string `json:"name"`
	// Role: view reads everything but Secrets; edit also execs, port-forwards and deletes pods; admin also keeps
	// Secrets. Default view.
	// +kubebuilder:validation:Enum=view;edit;admin
	// +kubebuilder:default=view
	// +optional
	Role string `json:"role,omitempty"`
}

// TenantRepository says where a tenant's own repository is. It becomes a Repository of the tenant's name.
type TenantRepository struct {
	// URL to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url"`
	// Ref to follow. Default: the branch the remote's HEAD names.
	// +optional
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the folder that holds kubeop.yaml. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	// +optional
	Path string `json:"path,omitempty"`
	// SecretRef names the credentials in the operator's namespace; see Repository.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// HookSecretRef names the push hook's key in the operator's namespace; see Repository.
	// +optional
	HookSecretRef *LocalSecretReference `json:"hookSecretRef,omitempty"`
	// History says which commits may follow the one that was accepted last: FastForward, those that descend from it, or Any.
	// One that may not is held until the annotation paas.kubeop.io/confirm-history names it. Default FastForward.
	// +kubebuilder:default=FastForward
	// +optional
	History HistoryPolicy `json:"history,omitempty"`
	// Verify accepts only commits or tags that one of the given keys has signed; the Secret is in the operator's namespace.
	// +optional
	Verify *GitVerification `json:"verify,omitempty"`
	// Interval between two polls. Default 10m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="10m"
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`
}

// TenantStatus says what was made for the tenant.
type TenantStatus struct {
	ReconcileStatus `json:",inline"`

	// Namespace is the tenant's home, which holds its Projects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Projects counts the tenant's projects.
	// +optional
	Projects int `json:"projects,omitempty"`
	// Inventory lists what was made for the tenant.
	// +optional
	Inventory Inventory `json:"inventory,omitzero"`
}

// Tenant is a team: its people, its repository and the namespaces that are its own.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=tn,categories=kubeop
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Projects",type=integer,JSONPath=`.status.projects`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9]{0,19}$')",message="name must be a letter followed by at most 19 letters or digits, without a dash"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['system', 'platform'])",message="the names system and platform are reserved"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec TenantSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +structType=atomic
	Status TenantStatus `json:"status,omitempty"`
}

// TenantList is a list of Tenants.
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
