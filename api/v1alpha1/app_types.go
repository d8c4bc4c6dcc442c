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
// +kubebuilder:validation:XValidation:rule="!has(self.prune) || self.type != 'Helm'",message="prune is not for type Helm: an upgrade always deletes what left the chart"
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

	// Host is the name under which an Ingress serves the first port of an Image app.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	// +optional
	Host string `json:"host,omitempty"`

	// Prune deletes objects that left the source. Not for type Helm, whose upgrades always do. Default true.
	// +optional
	Prune *bool `json:"prune,omitempty"`

	// DeletionPolicy says what becomes of the delivered objects when the app is deleted. Default Delete.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

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

// Prunes reports whether objects that left the source are deleted.
func (s *AppSpec) Prunes() bool { return s.Prune == nil || *s.Prune }

// AppStatus says what was delivered.
type AppStatus struct {
	ReconcileStatus `json:",inline"`

	// LastAttemptedRevision is what was last worked on: the commit of a Git app's source, the version of a chart from a
	// repository, and for all that comes with app.yaml itself (images, manifests, a chart beside it) the commit that
	// declared the app, as "branch@sha1:<commit>", or "generation <n>" of an app that no repository declared.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// LastAppliedRevision is the revision that was last applied as a whole.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// UnhealthySince is when the present input was first found unhealthy; the timeout counts from it.
	// +optional
	UnhealthySince *metav1.Time `json:"unhealthySince,omitempty"`
	// Release is the Helm release of a Helm app.
	// +optional
	Release *ReleaseStatus `json:"release,omitempty"`
	// Inventory lists the applied objects.
	// +optional
	Inventory Inventory `json:"inventory,omitzero"`
}

// ReleaseStatus names a Helm release as `helm list` shows it.
type ReleaseStatus struct {
	// Name of the release, in the app's namespace.
	Name string `json:"name"`
	// Revision counts installs, upgrades and rollbacks.
	Revision int `json:"revision"`
	// Status as Helm names it: deployed, failed, pending-upgrade and so on.
	Status string `json:"status"`
	// Chart is the chart's name and version, as "name-1.2.3".
	Chart string `json:"chart"`
	// AppVersion is the version of what the chart deploys, as the chart says.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
}

// App is one delivered application: an image, a Git folder, a Helm chart or raw manifests.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
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
	Status AppStatus `json:"status,omitempty"`
}

// AppList is a list of Apps.
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}
