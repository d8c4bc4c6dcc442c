package v1alpha1

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProjectSpec is a tenant's configuration of a project. A project cannot be suspended, so a tenant cannot stop the changes that
// administrators make.
type ProjectSpec struct {
	// Quota is the maximum usage of the project, as in a ResourceQuota. It cannot exceed the tenant's spec.quota. Defaults: requests.cpu
	// 4, requests.memory 8Gi, limits.memory 16Gi, requests.storage 20Gi, pods 50, services.loadbalancers 0, services.nodeports 0. For
	// every 50 pods the defaults are requests.ephemeral-storage 100Gi, limits.ephemeral-storage 2000Gi, and a number of objects of each
	// kind that apps may have. See docs/spec/project.md.
	Quota corev1.ResourceList `json:"quota,omitempty"`
	// Limits are the defaults for containers that set none.
	Limits ContainerLimits `json:"limits,omitzero"`
	// DeletionPolicy defines what happens to the namespace and its apps when the project is deleted. Default Delete.
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// ClaimDeletionPolicy defines what happens to claims that hold data when the project is deleted: Retain or Delete. Default: the
	// Tenant's policy.
	ClaimDeletionPolicy ClaimDeletionPolicy `json:"claimDeletionPolicy,omitempty"`
	// Cluster is the name of the Cluster that has the project, one of spec.clusters of the Tenant. Default: the first of these. A project of the
	// platform itself that names none is on every Cluster.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Cluster string `json:"cluster,omitempty"`
	// Namespace is for projects of the platform itself only, in platform/<project>/project.yaml of the platform repository: kubeop refuses
	// it in a tenant's project. Such a project has the name of its namespace.
	Namespace *PlatformNamespace `json:"namespace,omitempty"`
	// Promotion brings the versions that are healthy in another project of the tenant to the apps of this one, as commits. Default: nothing is
	// promoted.
	Promotion *Promotion `json:"promotion,omitempty"`
	// Previews gives branches of the tenant's own repository a project of their own, named <project>-pr-<branch>. It is refused in the platform
	// repository.
	Previews *ProjectPreviews `json:"previews,omitempty"`
	// Network are the connections between this project and others of the tenant. It is refused in a project of the platform itself, which has no
	// NetworkPolicy.
	Network ProjectNetwork `json:"network,omitzero"`

	Pace `json:",inline"`
}

// ProjectNetwork are the connections of a project to others of the same tenant.
type ProjectNetwork struct {
	// AllowFrom are projects of the same tenant whose pods may connect to the pods of this one. Projects of other tenants can never connect.
	// Default: none.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=35
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]{0,33}[a-z0-9])?$`
	// +listType=set
	AllowFrom []string `json:"allowFrom,omitempty"`
	// Policies says whose NetworkPolicies open connections: Platform or Own. Default Platform.
	// +kubebuilder:default=Platform
	Policies NetworkPolicies `json:"policies,omitempty"`
}

// NetworkPolicies says whose NetworkPolicies open the connections of a project.
// +kubebuilder:validation:Enum=Platform;Own
type NetworkPolicies string

const (
	// PlatformNetworkPolicies has kubeop's NetworkPolicy open everything that the project may have. Apps can have no NetworkPolicies.
	PlatformNetworkPolicies NetworkPolicies = "Platform"
	// OwnNetworkPolicies has kubeop's NetworkPolicy open only the cluster's DNS. NetworkPolicies of apps open more, within what the project may have.
	OwnNetworkPolicies NetworkPolicies = "Own"
)

// Promotion writes the versions of another project's apps to the files of the apps with the same names in this project.
type Promotion struct {
	// From is the other project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=35
	From string `json:"from"`
	// HealthyFor is how long an app of the other project has to be Ready before its version is promoted. Default 10m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	HealthyFor *metav1.Duration `json:"healthyFor,omitempty"`
	// Fields of the apps' spec that are promoted, beside the version, such as "helm.values.image.tag". The version is image.reference, helm.version
	// and helm.digest, git.oci.tag and git.oci.digest, and git.ref.tag and git.ref.commit.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
	// Write is how a version is written to Git. Default Commit.
	// +kubebuilder:default=Commit
	Write WriteMode `json:"write,omitempty"`
	// Approval is what a promotion waits for: None, or Annotation, with which an owner with the role admin confirms it; the condition
	// PromotionPending has the command. Default None.
	// +kubebuilder:default=None
	Approval Approval `json:"approval,omitempty"`
}

// Approval is what a promotion waits for.
// +kubebuilder:validation:Enum=None;Annotation
type Approval string

// The approvals of a promotion.
const (
	ApprovalNone       Approval = "None"
	ApprovalAnnotation Approval = "Annotation"
)

// Promoted is a version that was promoted to an app.
type Promoted struct {
	// App of this project.
	App string `json:"app"`
	// Version identifies what was written. It is not written again: if the file says something else afterwards, a person wrote it.
	Version string `json:"version"`
	// Changes says what was written, such as "image.reference: web:1.0 → web:1.1".
	Changes string `json:"changes"`
	// Commit that has it, and PullRequest the web page of the pull request with this commit; "" for a commit to the branch that the
	// repository follows.
	Commit      string `json:"commit"`
	PullRequest string `json:"pullRequest,omitempty"`
}

// HeldPromotion is a version that waits for a confirmation.
type HeldPromotion struct {
	// App of this project.
	App string `json:"app"`
	// Token confirms it, in the annotation paas.kubeop.io/confirm-promotion.
	Token string `json:"token"`
	// Changes says what would be written, such as "image.reference: web:1.0 → web:1.1".
	Changes string `json:"changes"`
}

// PromotionStatus reports promotions to the apps of a project.
type PromotionStatus struct {
	// Promoted is what was last promoted to each app.
	// +listType=map
	// +listMapKey=app
	Promoted []Promoted `json:"promoted,omitempty"`
	// HeldPromotions wait for a confirmation; at most 28, as many as one annotation can confirm.
	// +listType=map
	// +listMapKey=app
	HeldPromotions []HeldPromotion `json:"heldPromotions,omitempty"`
}

// MaxHeldPromotions is the most that HeldPromotions lists: the value of an annotation that owners set may have 253 characters.
const MaxHeldPromotions = 28

// The defaults of ProjectPreviews.
const (
	DefaultMaxPreviews = 5
	DefaultPreviewTTL  = 72 * time.Hour
)

// ProjectPreviews gives branches of the tenant's repository a project of their own, with the apps that the branch has in the project's folder.
// +kubebuilder:validation:XValidation:rule="has(self.branches) != (has(self.pullRequests) && self.pullRequests)",message="exactly one of branches and pullRequests must be set"
type ProjectPreviews struct {
	// Branches is a pattern of branch names, such as "feature/*": * matches everything but a slash, ? one character. The branch that the
	// Repository follows never has a preview.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._/*?-]+$`
	Branches string `json:"branches,omitempty"`
	// PullRequests gives a preview to each open pull request into the branch that the Repository follows, from a branch of the same repository.
	// The preview is named <project>-pr-<number>. The API of the Git host is called with the Secret and the type of commitStatus, or with secretRef.
	PullRequests bool `json:"pullRequests,omitempty"`
	// Max is how many previews the project has at the same time. Default 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Max int32 `json:"max,omitempty"`
	// TTL is how long after the last commit of its branch a preview is deleted. Default 72h.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="ttl must be at least 1h and at most 2160h"
	TTL *metav1.Duration `json:"ttl,omitempty"`
	// Quota of each preview, as spec.quota. Default: the defaults of spec.quota.
	Quota corev1.ResourceList `json:"quota,omitempty"`
	// Host is the pattern of the hosts of a preview's Image apps, such as "{branch}-{host}": {branch} is the part of the preview's name after
	// "-pr-", and {host} the host in app.yaml. Default: the apps have no hosts.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.contains('{branch}')",message="host must contain {branch}, so that each preview has hosts of its own"
	Host string `json:"host,omitempty"`
}

// ConfirmedPromotions returns the tokens of the promotions that are confirmed.
func (p *Project) ConfirmedPromotions() []string {
	return PromotionTokens(p.Annotations[ConfirmPromotionAnnotation])
}

// PromotionTokens reads tokens of promotions, separated by commas or blanks.
func PromotionTokens(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Most is how many previews the project may have.
func (p *ProjectPreviews) Most() int {
	if p.Max == 0 {
		return DefaultMaxPreviews
	}
	return int(p.Max)
}

// Lasts is how long a preview stays after the last commit of its branch.
func (p *ProjectPreviews) Lasts() time.Duration {
	if p.TTL == nil {
		return DefaultPreviewTTL
	}
	return p.TTL.Duration
}

// PlatformNamespace is the namespace of a project of the platform itself.
type PlatformNamespace struct {
	// Adopt lets kubeop deliver into a namespace that exists already, such as kube-system. kubeop adds its labels to an adopted namespace, and
	// removes them with the project; it never deletes the namespace. Default false: the Project is not ready if the namespace exists.
	Adopt bool `json:"adopt,omitempty"`
	// PodSecurity is the level of the Pod Security Standards that the namespace enforces: restricted, baseline or privileged. Default
	// restricted. An adopted namespace keeps its level if this is not set.
	// +kubebuilder:validation:Enum=restricted;baseline;privileged
	PodSecurity string `json:"podSecurity,omitempty"`
}

// ContainerLimits are the defaults of a LimitRange for containers.
type ContainerLimits struct {
	// Default limits. Default: memory 256Mi, ephemeral-storage 10Gi.
	Default corev1.ResourceList `json:"default,omitempty"`
	// DefaultRequest are the default requests. Default: cpu 50m, memory 64Mi, ephemeral-storage 64Mi.
	DefaultRequest corev1.ResourceList `json:"defaultRequest,omitempty"`
}

// ProjectStatus reports what was created for the project.
type ProjectStatus struct {
	ReconcileStatus `json:",inline"`
	AppCounts       `json:",inline"`

	// Namespace holds the project's Apps and everything they deliver.
	Namespace string `json:"namespace,omitempty"`
	// Refused is the newer version that condition Current reports. It is unset if there is none.
	Refused *Refused `json:"refused,omitempty"`
	// PullSecrets are the Secrets with credentials of Registries that kubeop keeps in the namespace, sorted by registry. The default service
	// account and the pods of Image apps name them.
	// +listType=map
	// +listMapKey=registry
	PullSecrets []PullSecret `json:"pullSecrets,omitempty"`
	// Inventory lists the objects that were created for the project.
	Inventory       Inventory `json:"inventory,omitzero"`
	PromotionStatus `json:",inline"`
}

// Project is one isolated namespace of a tenant. It lives in the tenant's home namespace.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Namespaced,shortName=proj,categories=kubeop
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.status.namespace`
// +kubebuilder:printcolumn:name="Apps",type=string,JSONPath=`.status.appsReady`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Stopped",type=string,JSONPath=`.status.conditions[?(@.type=="Stopped")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,33}[a-z0-9])?$')",message="name must be a DNS label of at most 35 characters"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.previews) || size(self.metadata.name) <= 20",message="previews needs a project name of at most 20 characters, because the names of its previews start with it"
type Project struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec ProjectSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +structType=atomic
	Status ProjectStatus `json:"status,omitempty"`
}

// ProjectList is a list of Projects.
// +kubebuilder:object:root=true
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Project `json:"items"`
}
