package v1alpha1

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantSpec is the administrators' configuration of a tenant. It is read from the platform repository only.
type TenantSpec struct {
	// Owners are the users and groups that have access to the tenant's namespaces.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Owners []Owner `json:"owners,omitempty"`
	// Repository is the tenant's own Git repository. Without it the tenant's projects are declared in the folder of tenant.yaml.
	Repository *TenantRepository `json:"repository,omitempty"`
	// PodSecurity is the Pod Security level that is enforced in the tenant's projects. Default restricted.
	// +kubebuilder:validation:Enum=restricted;baseline
	// +kubebuilder:default=restricted
	PodSecurity string `json:"podSecurity,omitempty"`
	// Quota is the maximum quota that each of the tenant's projects may request, as in a ResourceQuota. For other resources the maximum
	// is the default of a project's quota.
	Quota corev1.ResourceList `json:"quota,omitempty"`
	// Budget is the maximum that the quotas of all the tenant's projects may have together, with the names of a ResourceQuota. It may name
	// what the quota of each project counts. Projects that exist keep their quota when the budget is lowered. Default: no budget; the
	// numbers of projects and apps, and the sizes of files and sources, are in limits.
	Budget corev1.ResourceList `json:"budget,omitempty"`
	// HomeQuota is the quota of the tenant's home namespace, as in a ResourceQuota. Defaults: count/secrets 100, and 50 objects of each
	// other kind that apps may have.
	HomeQuota corev1.ResourceList `json:"homeQuota,omitempty"`
	// MaxObjectSize is the maximum size of a ConfigMap or Secret that the tenant's users or its apps' accounts write outside Git. A
	// workload may have half of it, any other object a quarter. Other limits apply to objects from Git. The size is that of the object
	// as text, including what the API server adds. Default 32Ki.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity('4Ki')) >= 0 && quantity(string(self)).compareTo(quantity('3Mi')) <= 0",message="maxObjectSize must be between 4Ki and 3Mi"
	MaxObjectSize *resource.Quantity `json:"maxObjectSize,omitempty"`
	// MaxTerminationGracePeriod is the maximum terminationGracePeriodSeconds of a pod, and how long the deletion of a project waits for
	// pods. Default 1h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('168h')",message="maxTerminationGracePeriod must be between 30s and 168h"
	MaxTerminationGracePeriod *metav1.Duration `json:"maxTerminationGracePeriod,omitempty"`
	// PriorityClasses are the PriorityClasses that the tenant's pods may use. Pods with a higher priority can preempt pods of other
	// tenants. Default: only the cluster's default class.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(c, !c.startsWith('system-'))",message="priority classes that start with system- are Kubernetes' own"
	// +listType=set
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// Taints are the keys of taints that the tenant's pods may tolerate, and so the nodes set apart that they may use. Default: only
	// node.kubernetes.io/not-ready and node.kubernetes.io/unreachable, which say how soon a pod leaves a lost node.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +listType=set
	Taints []string `json:"taints,omitempty"`
	// IngressAnnotations are annotations that the tenant's Ingresses and, for external-dns, its Services, Gateways and routes may have although they are
	// refused by default, because they write configuration of the controller, lead it to other namespaces, or make DNS records. See docs/image.md. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +listType=set
	IngressAnnotations []string `json:"ingressAnnotations,omitempty"`
	// CSIDrivers are the CSI drivers of which the tenant's pods may have inline volumes, such as secrets-store.csi.k8s.io. Such volumes are
	// mounted past claims, so past StorageClasses and quotas. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$`
	// +listType=set
	CSIDrivers []string `json:"csiDrivers,omitempty"`
	// EndpointsWriters are accounts, as <project>/<service account>, that may write Endpoints in the namespace of their project, such as those of databases that
	// keep their leader there. With Endpoints they lead a Service to any address. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +listType=set
	EndpointsWriters []string `json:"endpointsWriters,omitempty"`
	// Egress are the address ranges outside the cluster that the tenant's pods may connect to, if egress of its policies allows them too.
	// Default: what its policies allow, and none if they have no egress.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="every entry of egress must be a CIDR, such as 203.0.113.0/24"
	// +listType=set
	Egress []string `json:"egress,omitempty"`
	// ClusterKinds are cluster-scoped kinds that the tenant's apps may have, each as "<Kind>.<group>", such as
	// "CustomResourceDefinition.apiextensions.k8s.io". Objects of these kinds affect the whole cluster, so the tenant must be trusted
	// with the cluster. Kinds of RBAC, of the core group and of kubeop itself are never allowed. The operator can grant only what a
	// ClusterRole labelled paas.kubeop.io/aggregate-to-cluster-kinds gives it. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.endsWith('.rbac.authorization.k8s.io') && !k.endsWith('paas.kubeop.io'))",message="clusterKinds must not hold kinds of RBAC or of kubeop"
	// +listType=set
	ClusterKinds []string `json:"clusterKinds,omitempty"`
	// Policies are the names of the Policies that the tenant is under: policies/<policy>.yaml of the platform repository. Default: the
	// Policies with spec.default.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Policies []string `json:"policies,omitempty"`
	// PriceList is the name of the PriceList by which the tenant's usage is priced: prices/<pricelist>.yaml of the platform repository. Default: the
	// one with spec.default.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	PriceList string `json:"priceList,omitempty"`
	// CostBudget is what the tenant's usage of a calendar month should cost at most. Default: none. Nothing is refused or stopped when it costs more.
	CostBudget *CostBudget `json:"costBudget,omitempty"`
	// Clusters are the names of the Clusters on which the tenant's projects may be: clusters/<cluster>.yaml of the platform repository. The first one
	// has the projects that name none. Default: only the Cluster with spec.default.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// Domains are the tenant's own, such as "shop.example.com": its host names are that name or below it, and wildcards may be, too, besides what
	// Policies allow. A domain overlaps with none of another tenant, so two tenants with domains never have the same host name. Default: none, and
	// then only Policies limit the host names.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// +listType=set
	Domains []string `json:"domains,omitempty"`
	// Weight is the tenant's share wherever tenants wait for the same resource: workers, fetches, builds and Helm actions. A tenant with
	// weight 2 gets twice the turns of one with weight 1. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:default=1
	Weight int32 `json:"weight,omitempty"`
	// Limits are how much the tenant may declare, and how large its apps and sources may be. Defaults: tenantLimits in the chart's
	// values. See TenantLimits.
	Limits TenantLimits `json:"limits,omitzero"`
	// Notifications are sent when apps of the tenant fail, recover or deliver, or when a commit is not applied.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	Notifications []Notification `json:"notifications,omitempty"`
	// Freeze lists the times in which nothing new is delivered: commits of the tenant's own repository wait until a window has ended or the
	// annotation paas.kubeop.io/confirm-freeze names them. Commits of the platform repository do not wait.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Freeze []FreezeWindow `json:"freeze,omitempty"`
	// Frozen lets only administrators change anything of the tenant, until it is removed: commits of the tenant's own repository and new
	// revisions of its apps wait, and the admission policies refuse what its owners and the accounts of its apps write. What runs goes on.
	Frozen bool `json:"frozen,omitempty"`
	// Sops is "Generated" for an age key of the tenant's own, which kubeop makes once and keeps where no tenant reads it. Files that are encrypted for
	// the public key in status.sops.recipient are decrypted in all projects of the tenant, for apps whose decryption names no Secret. Default: none.
	// +kubebuilder:validation:Enum=Generated
	Sops string `json:"sops,omitempty"`
	// SopsKey is the number of the key with which files are to be encrypted. Another number has kubeop make another key, once; what is encrypted for
	// an earlier one is decrypted as before, and the apps that have such files say so. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	SopsKey int `json:"sopsKey,omitempty"`
	// Stopped ends all pods of the tenant's projects, and keeps everything else: claims, Services, Secrets and the specs of its workloads. Its
	// apps wait. When it is removed, everything runs again as before.
	Stopped bool `json:"stopped,omitempty"`
	// DeletionPolicy defines what happens to the tenant's namespaces when the tenant is deleted. Default Delete.
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// ClaimDeletionPolicy defines what happens to claims that hold data when the tenant is deleted: Retain or Delete. Default Retain.
	ClaimDeletionPolicy ClaimDeletionPolicy `json:"claimDeletionPolicy,omitempty"`

	Schedule `json:",inline"`
}

// Owner is a user or group with a role in every namespace of a tenant.
type Owner struct {
	// Kind of the subject, as the API server authenticates it.
	// +kubebuilder:validation:Enum=User;Group
	Kind string `json:"kind"`
	// Name of the user or group. Names that start with "system:" belong to Kubernetes and are rejected.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('system:')",message="names that start with system: belong to Kubernetes"
	Name string `json:"name"`
	// Role of the owner. view reads everything except Secrets. edit can also exec into, port-forward to and delete pods. admin can also
	// write Secrets. Default view.
	// +kubebuilder:validation:Enum=view;edit;admin
	// +kubebuilder:default=view
	Role string `json:"role,omitempty"`
}

// CostBudget says when the manager alerts about what a tenant's usage costs.
type CostBudget struct {
	// Amount is that of the net sum of a month in UTC, without taxes, in the currency of the tenant's price list.
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="amount must be more than 0"
	Amount Decimal `json:"amount"`
	// Thresholds are in percent of the amount. The manager alerts once in a month when the cost so far reaches one, and once when the forecast does. Default: 80 and 100.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=1000
	// +listType=set
	Thresholds []int32 `json:"thresholds,omitempty"`
}

// TenantRepository is the tenant's own Git repository. kubeop creates a Repository with the tenant's name from it.
type TenantRepository struct {
	// URL to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url"`
	// Ref to follow. Default: the default branch of the remote repository.
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the folder that holds kubeop.yaml. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	Path string `json:"path,omitempty"`
	// SecretRef names a Secret with the credentials in the operator's namespace. See Repository.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// HookSecretRef names a Secret with the push hook's key in the operator's namespace. See Repository.
	HookSecretRef *LocalSecretReference `json:"hookSecretRef,omitempty"`
	// History defines which commits may follow the last accepted commit: FastForward (its descendants) or Any. Other commits are held
	// until the annotation paas.kubeop.io/confirm-history names them. Default FastForward.
	// +kubebuilder:default=FastForward
	History HistoryPolicy `json:"history,omitempty"`
	// Verify accepts only commits or tags that are signed by one of the given keys. The Secret is in the operator's namespace.
	Verify *GitVerification `json:"verify,omitempty"`
	// CommitStatus shows at the Git host whether a commit is applied and healthy. Default: nothing is reported.
	CommitStatus *CommitStatus `json:"commitStatus,omitempty"`
	// Previews defines what the pull requests into the followed branch get: None, or Plan, a comment that says what their commits would
	// change. Those from forks get none. Default None.
	// +kubebuilder:default=None
	Previews PreviewPolicy `json:"previews,omitempty"`
	// Interval between two polls. Default: a minute, and 10m after a call of the push hook, for a day.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	Interval metav1.Duration `json:"interval,omitzero"`
}

// TenantStatus reports what was created for the tenant.
type TenantStatus struct {
	ReconcileStatus `json:",inline"`
	AppCounts       `json:",inline"`

	// Namespace is the tenant's home namespace, which holds its Projects.
	Namespace string `json:"namespace,omitempty"`
	// Projects counts the tenant's projects.
	Projects int `json:"projects,omitempty"`
	// Budget reports how much of spec.budget the quotas of the projects have; nil without a budget.
	Budget *BudgetStatus `json:"budget,omitempty"`
	// Sops is the key for encrypted files; nil without spec.sops.
	Sops *SopsStatus `json:"sops,omitempty"`
	// Guards says of each guard whether it holds for the tenant, and where.
	// +listType=map
	// +listMapKey=name
	Guards []GuardStatus `json:"guards,omitempty"`
	// Inventory lists the objects that were created for the tenant.
	Inventory Inventory `json:"inventory,omitzero"`
}

// GuardState says where a guard holds.
type GuardState string

const (
	// GuardEnforced means that the API server refuses what breaks the guard, whoever writes it, also while kubeop does not run. What only kubeop does,
	// such as fetching sources, kubeop refuses.
	GuardEnforced GuardState = "Enforced"
	// GuardRenderedOnly means that kubeop refuses it in apps, or writes an object that somebody else has to enforce. The API server does not refuse it.
	GuardRenderedOnly GuardState = "RenderedOnly"
	// GuardAbsent means that nothing refuses it.
	GuardAbsent GuardState = "Absent"
)

// GuardStatus says whether a guard holds.
type GuardStatus struct {
	// Name is the name of a rule of policies, such as Images, or Admission (the rules that always hold), Requests, Deletions, Operator, Limits, Quota,
	// Egress, Defaults, AddedMetadata, PodSecurity, Network, ClusterNetworkPolicy or FairShare.
	Name string `json:"name"`
	// State is Enforced, RenderedOnly or Absent.
	State GuardState `json:"state"`
	// Reason is why the guard is not enforced, or what it enforces.
	Reason string `json:"reason,omitempty"`
}

// SopsStatus has the keys with which files of a tenant are encrypted.
type SopsStatus struct {
	// Recipient is the age public key to encrypt for.
	Recipient string `json:"recipient"`
	// Earlier are the other keys of the tenant, which still decrypt.
	Earlier []SopsKey `json:"earlier,omitempty"`
	// Number is the number of the key to encrypt for.
	Number int `json:"number,omitempty"`
}

// SopsKey is a key of a tenant.
type SopsKey struct {
	// Number is the number that spec.sopsKey had when the key was made.
	Number int `json:"number"`
	// Recipient is the age public key.
	Recipient string `json:"recipient"`
}

// BudgetStatus reports how much of a tenant's budget the quotas of its projects have.
type BudgetStatus struct {
	// Used is the sum of the quotas, for each resource of spec.budget.
	Used corev1.ResourceList `json:"used,omitempty"`
	// Over is by how much the sum exceeds the budget, for each resource of which it does.
	Over corev1.ResourceList `json:"over,omitempty"`
	// Summary is Used and spec.budget in one line, such as "pods 150/200, requests.cpu 12/16".
	Summary string `json:"summary,omitempty"`
}

// Tenant is a team with its users, its repository and its own namespaces.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=tn,categories=kubeop
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Projects",type=integer,JSONPath=`.status.projects`
// +kubebuilder:printcolumn:name="Apps",type=string,JSONPath=`.status.appsReady`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Frozen",type=string,JSONPath=`.status.conditions[?(@.type=="Frozen")].reason`,priority=1
// +kubebuilder:printcolumn:name="Stopped",type=string,JSONPath=`.status.conditions[?(@.type=="Stopped")].reason`,priority=1
// +kubebuilder:printcolumn:name="Budget",type=string,JSONPath=`.status.budget.summary`,priority=1
// +kubebuilder:printcolumn:name="Suspended",type=string,JSONPath=`.status.conditions[?(@.type=="Suspended")].status`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9]{0,19}$')",message="name must be a letter followed by at most 19 letters or digits, without a dash"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['system', 'platform'])",message="the names system and platform are reserved"
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
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
