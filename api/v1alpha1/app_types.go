package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AppType is the type of an app, and so the source field that its spec sets.
// +kubebuilder:validation:Enum=Image;Git;Helm;Raw
type AppType string

// The types of app.
const (
	AppImage AppType = "Image"
	AppGit   AppType = "Git"
	AppHelm  AppType = "Helm"
	AppRaw   AppType = "Raw"
)

// AppSpec defines what to deliver and how. Only the source field that type names is set.
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
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || has(self.host) || has(self.hosts)",message="ingress needs host or hosts: without them there is no Ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.force) || !self.force || self.type != 'Helm'",message="force is not for type Helm: set helm.upgrade.force"
// +kubebuilder:validation:XValidation:rule="!has(self.takeOwnership) || !self.takeOwnership || self.type != 'Helm'",message="takeOwnership is not for type Helm: set helm.install.takeOwnership"
// +kubebuilder:validation:XValidation:rule="!has(self.prune) || self.type != 'Helm'",message="prune is not for type Helm: an upgrade always deletes what left the chart"
// +kubebuilder:validation:XValidation:rule="!has(self.movedFrom) || self.type == 'Image'",message="movedFrom is for type Image; in other types name the claims as they are"
type AppSpec struct {
	// Type of the app. Immutable.
	Type AppType `json:"type"`

	// Image delivers one container image as a Deployment and a Service.
	Image *ImageSource `json:"image,omitempty"`
	// Git delivers a folder of manifests from a Git repository.
	Git *GitSource `json:"git,omitempty"`
	// Helm delivers a chart as a Helm release.
	Helm *HelmSource `json:"helm,omitempty"`
	// Raw delivers manifests that are written here or in the app's folder.
	Raw *RawSource `json:"raw,omitempty"`

	// Host is the host name under which an Ingress serves the first port of an Image app. Use hosts for more than one, or for paths.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Host string `json:"host,omitempty"`

	// Hosts are the host names and paths under which an Image app is served. An Ingress serves them, or an HTTPRoute if the platform has
	// a Gateway.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Hosts []AppHost `json:"hosts,omitempty"`

	// Ingress are the class and the annotations of the Ingress that serves host or hosts. It is rejected if the platform has a Gateway.
	Ingress *AppIngress `json:"ingress,omitempty"`

	// Prune deletes objects that left the source. It is not for type Helm: a Helm upgrade always deletes them. Default true.
	Prune *bool `json:"prune,omitempty"`

	// DeletionPolicy defines what happens to the delivered objects when the app is deleted. Default Delete.
	// +kubebuilder:default=Delete
	DeletionPolicy AppDeletionPolicy `json:"deletionPolicy,omitempty"`

	// ClaimDeletionPolicy defines what happens to claims that hold data when the app is deleted: Retain or Delete. Default: the
	// Project's policy.
	ClaimDeletionPolicy ClaimDeletionPolicy `json:"claimDeletionPolicy,omitempty"`

	// MovedFrom lets an Image app use the claims of a deleted app of the same project, such as its own former name. Keep it for as long
	// as the app mounts those claims.
	MovedFrom *MovedFrom `json:"movedFrom,omitempty"`

	Delivery `json:",inline"`

	// Timeout of one fetch, one apply or one Helm action, and the time in which the app must become healthy. From 1s to 1h. Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +kubebuilder:default="5m"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	Schedule `json:",inline"`
}

// MovedFrom names the app from which another app takes over claims.
type MovedFrom struct {
	// App whose name the claims have: the claim of a volume is "<app>-<volume>". A claim is matched by its volume's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	App string `json:"app"`
}

// Prunes reports whether the app deletes objects that left the source.
func (s *AppSpec) Prunes() bool { return s.Prune == nil || *s.Prune }

// URL returns where the app is served first, such as "https://shop.example.com/api"; "" if it has no host. Without tlsSecretRef and without
// an issuer of certificates it has no scheme, because the Gateway of the platform may have certificates.
func (s *AppSpec) URL() string {
	first := AppHost{Host: s.Host}
	if len(s.Hosts) > 0 {
		first = s.Hosts[0]
	}
	url := first.Host
	if url == "" {
		return ""
	}
	if first.Path != "/" {
		url += first.Path
	}
	if first.TLSSecretRef != nil || s.Ingress.Issued() {
		url = "https://" + url
	}
	return url
}

// DriftMode returns the drift mode of the spec, or the default of the app's type.
func (s *AppSpec) DriftMode() DriftMode {
	switch {
	case s.Drift.Mode != "":
		return s.Drift.Mode
	case s.Type == AppHelm:
		return DriftWarn
	}
	return DriftCorrect
}

// AppStatus reports what was delivered.
type AppStatus struct {
	ReconcileStatus `json:",inline"`

	// ObservedTree is the Git tree hash of the app's folder for which Ready is True. It is empty if no repository declared the app.
	ObservedTree string `json:"observedTree,omitempty"`
	// LastAttemptedRevision is the revision of the last attempt. For a Git source it is its commit, and for a chart from a repository
	// its version. For everything in the app's own folder it is the commit that declared the app, as "branch@sha1:<commit>". For an app
	// that no repository declared it is "generation <n>".
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// SourceDigest is the digest of all content that the attempted revision of a Git source consists of. A later revision with the same
	// digest causes no event.
	SourceDigest string `json:"sourceDigest,omitempty"`
	// LastAppliedRevision is the last revision that was applied completely.
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// AppliedGeneration is the generation of the App with which LastAppliedRevision is applied. It is 0 if the last attempt to apply has not
	// succeeded, and unset before the first one.
	AppliedGeneration *int64 `json:"appliedGeneration,omitempty"`
	// ShortRevision is LastAppliedRevision with a short hash, as "main@sha1:1a2b3c4d", for kubectl get.
	ShortRevision string `json:"shortRevision,omitempty"`
	// URL is where the app is served: the first of spec.hosts with its path, and with "https://" if it has a tlsSecretRef or an issuer.
	URL string `json:"url,omitempty"`
	// RenderedBytes is the size of what the app delivers, in bytes. It counts towards spec.limits.renderedBytes of the Tenant.
	RenderedBytes int64 `json:"renderedBytes,omitempty"`
	// Filled is what kubeop filled in for the Pod Security level of the namespace, as "<kind>/<name>: <fields>; container <name>:
	// <fields>". At most 20.
	// +listType=atomic
	Filled []string `json:"filled,omitempty"`
	// UnhealthySince is when the current input was first found unhealthy. The timeout starts then.
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
	// Release is the Helm release of a Helm app.
	Release *ReleaseStatus `json:"release,omitempty"`
	// History lists the revisions of the release that Helm keeps, the newest first.
	// +listType=atomic
	History []ReleaseSnapshot `json:"history,omitempty"`
	// Deliveries are the last ten deliveries, the newest first: each time the source or the spec changed and, for a Helm app, each new
	// revision of its release.
	// +listType=atomic
	Deliveries []DeliveryRecord `json:"deliveries,omitempty"`
	// Failures counts the failed attempts of the current input. It is zero after a success.
	Failures int64 `json:"failures,omitempty"`
	// NextRetryAt is when a failed input is retried. It is unset if there is no retry, or if the retry is immediate.
	NextRetryAt *metav1.Time `json:"nextRetryAt,omitempty"`
	// LastHandledForceAt is the last handled value of the annotation reconcile.fluxcd.io/forceAt.
	LastHandledForceAt string `json:"lastHandledForceAt,omitempty"`
	// LastHandledResetAt is the last handled value of the annotation reconcile.fluxcd.io/resetAt.
	LastHandledResetAt string `json:"lastHandledResetAt,omitempty"`
	// Image is the image that the policy chose.
	Image *ImageStatus `json:"image,omitempty"`
	// Hooks are the results of the current revision's hooks.
	// +listType=atomic
	Hooks []HookStatus `json:"hooks,omitempty"`
	// RunningHook is the hook that is running. It is set only if the hook takes a while.
	RunningHook *RunningHook `json:"runningHook,omitempty"`
	// Held are objects that left the source and wait for a confirmation of their deletion, as "<kind> <name>: why". At most 20.
	// +listType=atomic
	Held []string `json:"held,omitempty"`
	// HeldToken is the value that the annotation paas.kubeop.io/confirm-deletions needs to confirm the deletions. It is valid for this
	// revision and this list only. kubeop removes the annotation after use.
	HeldToken string `json:"heldToken,omitempty"`
	// StartedEmpty are the claims of an Image app that were new and empty beside an older claim of an app that is gone. They are checked as
	// long as the older claim is there; condition StartedEmpty reports them.
	// +listType=atomic
	StartedEmpty []string `json:"startedEmpty,omitempty"`
	// CorrectedGeneration is the generation of the App when drift was corrected last, while condition Drifted reports that correction.
	CorrectedGeneration int64 `json:"correctedGeneration,omitempty"`
	// Refused is the newer version that condition Current reports. It is unset if there is none.
	Refused *Refused `json:"refused,omitempty"`
	// Inventory lists the applied objects.
	Inventory Inventory `json:"inventory,omitzero"`
}

// DeliveryRecord is one delivery of an app.
type DeliveryRecord struct {
	// Revision that was delivered, as in lastAttemptedRevision.
	Revision string `json:"revision"`
	// Generation of the App.
	Generation int64 `json:"generation,omitempty"`
	// Commit is the hash of the Git commit: of the source or, if the source is not in Git, of the commit that declared the app. It is empty
	// if no commit did.
	Commit string `json:"commit,omitempty"`
	// Author is the name of the author of that commit. Nothing proves it, unless verify checks signatures.
	Author string `json:"author,omitempty"`
	// Image is the image that a policy chose.
	Image string `json:"image,omitempty"`
	// Release is the revision of the Helm release.
	Release int `json:"release,omitempty"`
	// StartedAt is when kubeop first tried to deliver it.
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when it was healthy, with all its tests and hooks, or when it first failed.
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Duration from StartedAt to FinishedAt, in whole seconds.
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Result is Progressing, Succeeded or Failed. A failed delivery may still succeed, because it is tried again. What happens after
	// Succeeded does not change it.
	Result string `json:"result"`
	// Reason is why it failed: the reason of the condition.
	Reason string `json:"reason,omitempty"`
}

// Results of a DeliveryRecord.
const (
	DeliveryProgressing = "Progressing"
	DeliverySucceeded   = "Succeeded"
	DeliveryFailed      = "Failed"
)

// ImageStatus is the image that a policy chose.
type ImageStatus struct {
	// Reference that the policy chose, including its digest: "registry/name:tag@sha256:…". It is delivered, unless policy.write is set: then the
	// app's file says what is delivered.
	Reference string `json:"reference"`
	// Tag that the policy chose.
	Tag string `json:"tag"`
	// Previous is the reference that was delivered before this one. It is empty for the first.
	Previous string `json:"previous,omitempty"`
	// Since is when this reference was chosen.
	Since metav1.Time `json:"since"`
	// Written is the chosen image that the file has, or had last, with policy.write.
	Written *ImageWritten `json:"written,omitempty"`
}

// ImageWritten is a chosen image that is or was in the file of the app, written there by kubeop or by others.
type ImageWritten struct {
	// Reference in the file. It is not written again: if the file says something else afterwards, a person wrote it.
	Reference string `json:"reference"`
	// Commit that has it.
	Commit string `json:"commit"`
	// PullRequest is the web page of the pull request with this commit; "" for a commit to the branch that the repository follows.
	PullRequest string `json:"pullRequest,omitempty"`
}

// HookStatus is the result of a hook.
type HookStatus struct {
	// Phase in which the hook runs: pre or post.
	Phase string `json:"phase"`
	// Name of the hook.
	Name string `json:"name"`
	// Input identifies the revision the hook ran for: a digest of it under a key that only the operator has.
	Input string `json:"input"`
	// Result is Succeeded or Failed.
	Result string `json:"result"`
	// FinishedAt is when the hook ended.
	FinishedAt metav1.Time `json:"finishedAt"`
	// Message is why the hook failed, with the last lines of its log.
	Message string `json:"message,omitempty"`
	// Repeat is the input for which the failed hook runs again, because a person requested it with the annotation
	// reconcile.fluxcd.io/forceAt.
	Repeat string `json:"repeat,omitempty"`
}

// RunningHook is a hook that has not ended.
type RunningHook struct {
	// Job that runs the hook.
	Job string `json:"job"`
	// Message is why the hook has not ended, as reported by its pods.
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
	// Deployed is the newest deployed revision, whose objects the inventory lists. Zero if there is none.
	Deployed int `json:"deployed,omitempty"`
	// Content is a digest of what that revision holds, as in the history. It distinguishes revisions with the same number from different
	// installations.
	Content string `json:"content,omitempty"`
	// Proven is true if the deployed revision was healthy and its tests, where enabled, succeeded. A rollback may return to it.
	Proven bool `json:"proven,omitempty"`
	// Chart is the chart's name and version, as "name-1.2.3".
	Chart string `json:"chart"`
	// AppVersion is the appVersion in the chart's Chart.yaml.
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
	// AppVersion is the appVersion in the chart's Chart.yaml.
	AppVersion string `json:"appVersion,omitempty"`
	// ValuesDigest is a digest of the values given to the chart, as "hmac-sha256:<hex>". Its key is known to the operator only. Equal
	// values in this installation have equal digests, and a digest does not reveal its values.
	ValuesDigest string `json:"valuesDigest"`
	// FirstDeployed is when the release was first installed.
	FirstDeployed metav1.Time `json:"firstDeployed"`
	// LastDeployed is when this revision was deployed.
	LastDeployed metav1.Time `json:"lastDeployed"`
	// Test is the result of the chart's tests: Succeeded or Failed. It is empty if no test ran.
	Test string `json:"test,omitempty"`
	// Digest of the revision's chart, values, manifests and hooks, made as ValuesDigest is. A rollback returns only to a revision that
	// still has its recorded digest.
	Digest string `json:"digest"`
}

// App is one delivered application: an image, a Git folder, a Helm chart or raw manifests.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Namespaced,categories=kubeop
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.shortRevision`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Suspended",type=string,JSONPath=`.status.conditions[?(@.type=="Suspended")].status`,priority=1
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
