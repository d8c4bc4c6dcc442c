package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppType names the member of the spec that says what to deliver.
// +kubebuilder:validation:Enum=Image;Git;Helm;Raw
type AppType string

// The types of app.
const (
	AppImage AppType = "Image"
	AppGit   AppType = "Git"
	AppHelm  AppType = "Helm"
	AppRaw   AppType = "Raw"
)

// AppSpec says what to deliver and how. Exactly the member that type names is set.
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="type is immutable: remove the app and add it again"
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.type == 'Image')",message="image is required when type is Image, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.git) == (self.type == 'Git')",message="git is required when type is Git, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.helm) == (self.type == 'Helm')",message="helm is required when type is Helm, and only then"
// +kubebuilder:validation:XValidation:rule="has(self.raw) == (self.type == 'Raw')",message="raw is required when type is Raw, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.host) || self.type == 'Image'",message="host is for type Image; other types bring their own Ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.host) || (has(self.image) && has(self.image.ports))",message="host needs image.ports: traffic goes to the first"
// +kubebuilder:validation:XValidation:rule="!has(self.host) || !has(self.image) || !has(self.image.ports) || size(self.image.ports) == 0 || self.image.ports[0].protocol == 'TCP'",message="host needs the first of image.ports to be TCP: traffic goes there"
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || self.type == 'Image'",message="hosts is for type Image; other types bring their own Ingress"
// +kubebuilder:validation:XValidation:rule="!(has(self.host) && has(self.hosts))",message="set host or hosts, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || (has(self.image) && has(self.image.ports))",message="hosts needs image.ports: traffic goes there"
// +kubebuilder:validation:XValidation:rule="!has(self.force) || !self.force || self.type != 'Helm'",message="force is not for type Helm: set helm.upgrade.force"
// +kubebuilder:validation:XValidation:rule="!has(self.takeOwnership) || !self.takeOwnership || self.type != 'Helm'",message="takeOwnership is not for type Helm: set helm.install.takeOwnership"
// +kubebuilder:validation:XValidation:rule="!has(self.prune) || self.type != 'Helm'",message="prune is not for type Helm: an upgrade always deletes what left the chart"
// +kubebuilder:validation:XValidation:rule="!has(self.movedFrom) || self.type == 'Image'",message="movedFrom is for type Image; in other types name the claims as they are"
type AppSpec struct {
	// Type of the app. Immutable.
	Type AppType `json:"type"`

	// Image delivers one container image as a Deployment and a Service.
	// +optional
	Image *ImageSource `json:"image,omitempty"`
	// Git delivers a folder of manifests from a Git repository.
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// Helm delivers a chart as a Helm release.
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`
	// Raw delivers manifests written here or beside app.yaml.
	// +optional
	Raw *RawSource `json:"raw,omitempty"`

	// Host is the name under which an Ingress serves the first port of an Image app; hosts says more.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// +optional
	Host string `json:"host,omitempty"`

	// Hosts are the names and paths under which an Ingress, or where the platform has a Gateway an HTTPRoute, serves an
	// Image app.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Hosts []AppHost `json:"hosts,omitempty"`

	// Prune deletes objects that left the source. Not for type Helm, whose upgrades always do. Default true.
	// +optional
	Prune *bool `json:"prune,omitempty"`

	// DeletionPolicy says what becomes of the delivered objects when the app is deleted. Default Delete.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy AppDeletionPolicy `json:"deletionPolicy,omitempty"`

	// ClaimDeletionPolicy says what becomes of claims that hold data when the app is deleted: Retain or Delete. Default: the Project's.
	// +optional
	ClaimDeletionPolicy ClaimDeletionPolicy `json:"claimDeletionPolicy,omitempty"`

	// MovedFrom has an Image app go on with the claims of an app of the project that is gone, such as itself under its former
	// name. It stays as long as the app mounts them.
	// +optional
	MovedFrom *MovedFrom `json:"movedFrom,omitempty"`

	Delivery `json:",inline"`

	// Timeout of one fetch, one apply or one Helm action, and the time the app has to become healthy, from 1s to 1h.
	// Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +kubebuilder:default="5m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`

	Schedule `json:",inline"`
}

// MovedFrom names the app whose claims another goes on with.
type MovedFrom struct {
	// App after which the claims are named: those of its volumes are "<app>-<volume>". Volumes are told apart by their names.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	App string `json:"app"`
}

// Prunes reports whether objects that left the source are deleted.
func (s *AppSpec) Prunes() bool { return s.Prune == nil || *s.Prune }

// DriftMode returns what is done about drift, or the default of the app's type.
func (s *AppSpec) DriftMode() DriftMode {
	switch {
	case s.Drift.Mode != "":
		return s.Drift.Mode
	case s.Type == AppHelm:
		return DriftWarn
	}
	return DriftCorrect
}

// AppStatus says what was delivered.
type AppStatus struct {
	ReconcileStatus `json:",inline"`

	// ObservedTree is the Git tree hash of the app's folder that Ready, when it is True, speaks of, as observedGeneration is
	// of the spec. Empty for an app that no repository declared.
	// +optional
	ObservedTree string `json:"observedTree,omitempty"`
	// LastAttemptedRevision is what was last worked on: the commit of a Git app's source, the version of a chart from a
	// repository, and for all that comes with app.yaml itself (images, manifests, a chart beside it) the commit that
	// declared the app, as "branch@sha1:<commit>", or "generation <n>" of an app that no repository declared.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// SourceDigest is the digest of what the attempted revision of an app or chart from Git is made from: of all that was read
	// there. A later revision of the same digest is not told.
	// +optional
	SourceDigest string `json:"sourceDigest,omitempty"`
	// LastAppliedRevision is the revision that was last applied as a whole.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// RenderedBytes is the size of what the app delivers, as spec.limits.renderedBytes of its Tenant counts it, in bytes.
	// +optional
	RenderedBytes int64 `json:"renderedBytes,omitempty"`
	// UnhealthySince is when the present input was first found unhealthy; the timeout counts from it.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
	// Release is the Helm release of a Helm app.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`
	// History lists the revisions of the release that Helm keeps, newest first.
	// +listType=atomic
	// +optional
	History []ReleaseSnapshot `json:"history,omitempty"`
	// Failures counts the failed tries of the present input; zero once it succeeded.
	// +optional
	Failures int64 `json:"failures,omitempty"`
	// NextRetryAt is when a failed input is tried again; unset when it is not, or at once.
	// +optional
	NextRetryAt *metav1.Time `json:"nextRetryAt,omitempty"`
	// LastHandledForceAt is the last value of the annotation reconcile.fluxcd.io/forceAt that was acted on.
	// +optional
	LastHandledForceAt string `json:"lastHandledForceAt,omitempty"`
	// LastHandledResetAt is the last value of the annotation reconcile.fluxcd.io/resetAt that was acted on.
	// +optional
	LastHandledResetAt string `json:"lastHandledResetAt,omitempty"`
	// Image is what an image policy chose.
	// +optional
	Image *ImageStatus `json:"image,omitempty"`
	// Hooks tells how the hooks of the present revision ended.
	// +listType=atomic
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`
	// RunningHook is the hook that is running, once that takes a while.
	// +optional
	RunningHook *RunningHook `json:"runningHook,omitempty"`
	// Held are the objects that left the source and are not deleted before somebody confirms it, at most 20, as
	// "<kind> <name>: why".
	// +listType=atomic
	// +optional
	Held []string `json:"held,omitempty"`
	// HeldToken is what the annotation paas.kubeop.io/confirm-deletions has to be for them to go: it stands for this revision and
	// this list, and for nothing else. The annotation is removed once it was used.
	// +optional
	HeldToken string `json:"heldToken,omitempty"`
	// Inventory lists the applied objects.
	// +optional
	Inventory Inventory `json:"inventory,omitzero"`
}

// ImageStatus is the image that a policy chose.
type ImageStatus struct {
	// Reference that is delivered, with its digest: "registry/name:tag@sha256:…".
	Reference string `json:"reference"`
	// Tag that the policy chose.
	Tag string `json:"tag"`
	// Previous is the reference that was delivered before this one; empty for the first.
	// +optional
	Previous string `json:"previous,omitempty"`
	// Since is when this reference was chosen.
	Since metav1.Time `json:"since"`
}

// HookStatus tells how a hook ended.
type HookStatus struct {
	// Phase is when it runs: pre or post.
	Phase string `json:"phase"`
	// Name of the hook.
	Name string `json:"name"`
	// Input stands for the revision it ran for: a digest of it under a key that only the operator has.
	Input string `json:"input"`
	// Result is Succeeded or Failed.
	Result string `json:"result"`
	// FinishedAt is when it ended.
	FinishedAt metav1.Time `json:"finishedAt"`
	// Message is why it failed, with the last lines of its log.
	// +optional
	Message string `json:"message,omitempty"`
}

// RunningHook is a hook that has not ended.
type RunningHook struct {
	// Job that runs the hook.
	Job string `json:"job"`
	// Message is why it does not end, as far as its pods say.
	// +optional
	Message string `json:"message,omitempty"`
}

// ReleaseStatus names a Helm release as `helm list` shows it.
type ReleaseStatus struct {
	// Name of the release, in the app's namespace.
	Name string `json:"name"`
	// Revision counts installs, upgrades and rollbacks.
	Revision int `json:"revision"`
	// Status as Helm names it: deployed, failed, pending-upgrade and so on.
	Status string `json:"status"`
	// Deployed is the newest revision that is deployed; the inventory lists its objects. Zero when there is none.
	// +optional
	Deployed int `json:"deployed,omitempty"`
	// Content tells that revision from one of the same number after another installation: a digest of what it holds, as in the history.
	// +optional
	Content string `json:"content,omitempty"`
	// Proven: the deployed revision was seen healthy and, where tests are enabled, they succeeded. A rollback may return to it.
	// +optional
	Proven bool `json:"proven,omitempty"`
	// Chart is the chart's name and version, as "name-1.2.3".
	Chart string `json:"chart"`
	// AppVersion is the version of what the chart deploys, as the chart says.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
}

// ReleaseSnapshot is one revision of a release.
type ReleaseSnapshot struct {
	// Revision counts installs, upgrades and rollbacks.
	Revision int `json:"revision"`
	// Status as Helm names it.
	Status string `json:"status"`
	// Chart is the chart's name.
	Chart string `json:"chart"`
	// ChartVersion is the chart's version.
	ChartVersion string `json:"chartVersion"`
	// AppVersion is the version of what the chart deploys, as the chart says.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// ValuesDigest is a digest of the values given to the chart, as "hmac-sha256:<hex>" under a key that only the operator has: equal
	// values of this installation have equal digests, and nobody can tell values by them.
	ValuesDigest string `json:"valuesDigest"`
	// FirstDeployed is when the release was first installed.
	FirstDeployed metav1.Time `json:"firstDeployed"`
	// LastDeployed is when this revision was made.
	LastDeployed metav1.Time `json:"lastDeployed"`
	// Test is how the chart's tests ended, Succeeded or Failed; empty when none ran.
	// +optional
	Test string `json:"test,omitempty"`
	// Digest of what the revision holds, as ValuesDigest is of the values: chart, values, manifests and hooks. A rollback goes only to
	// a revision that still holds what it was recorded with.
	Digest string `json:"digest"`
}

// App is one delivered application: an image, a Git folder, a Helm chart or raw manifests.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Namespaced,categories=kubeop
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lastAppliedRevision`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,51}[a-z0-9])?$')",message="name must be a DNS label that starts with a letter, of at most 53 characters"
type App struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AppSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +structType=atomic
	Status AppStatus `json:"status,omitempty"`
}

// AppList is a list of Apps.
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}
