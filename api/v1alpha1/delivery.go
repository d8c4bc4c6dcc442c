package v1alpha1

import (
	"cmp"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Delivery is how an app is brought into the cluster, whatever its type.
type Delivery struct {
	// DependsOn are objects that must be ready before the app is delivered. What depends on an app from the same repository
	// waits until that app is ready with what the same commit says of it.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Hooks are Jobs that run before and after each new revision, once for each.
	// +optional
	Hooks Hooks `json:"hooks,omitzero"`
	// HealthCheckExprs say by CEL when objects of a kind are healthy, failed or under way, where kstatus does not know.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs,omitempty"`
	// Drift is what becomes of changes that others make to what was delivered.
	// +optional
	Drift Drift `json:"drift,omitzero"`
	// Force deletes and creates anew an object whose change the API server refuses because a field cannot be changed. What
	// the object held is lost, and its pods stop. Not for type Helm, which has helm.upgrade.force. Default false: the app
	// says which field it is.
	// +optional
	Force bool `json:"force,omitempty"`
	// TakeOwnership has the app take over objects that exist already and belong to nobody: to no app, no Helm release and
	// no other kubeop object. What is cluster-scoped is the administrators' to hand over. Not for type Helm, which has
	// helm.install.takeOwnership. Default false: the app says which object is in its way.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`
}

// Dependency is an object that must be ready first: an App, by default of the same project, a Project of the same tenant,
// or any other object in the namespace of one of the tenant's projects.
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) || !has(self.kind) || self.kind in ['App', 'Project']",message="apiVersion is required unless kind is App or Project"
// +kubebuilder:validation:XValidation:rule="!(has(self.kind) && self.kind == 'Project' && has(self.project))",message="project is not for kind Project: name is the project's"
type Dependency struct {
	// APIVersion of the object, such as "batch/v1". Default: kubeop's own, for the kinds App and Project.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object. Default App.
	// +kubebuilder:default=App
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Project of the same tenant that the object is in. Default: the app's own.
	// +kubebuilder:validation:MaxLength=35
	// +optional
	Project string `json:"project,omitempty"`
	// ReadyExpr is a CEL expression that is true when the object is ready; dep is the object, self the app without its
	// status. It stands instead of the default: the object is ready by kstatus, and an App or Project by its condition Ready.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// GroupVersionKind of the object, defaults filled in.
func (d *Dependency) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(cmp.Or(d.APIVersion, GroupVersion.String()), cmp.Or(d.Kind, AppKind))
}

// Hooks are Jobs round the delivery of a revision.
type Hooks struct {
	// Pre run one after the other before anything of a new revision is applied. One that fails stops the delivery.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Pre []Hook `json:"pre,omitempty"`
	// Post run one after the other once the revision is healthy.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Post []Hook `json:"post,omitempty"`
}

// Hook is a Job of one container, which runs as restricted as an app of type Image.
type Hook struct {
	// Name of the hook, which the Job and its messages carry.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Image to run. Default: the image of an app of type Image, at the revision that is delivered.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	// +optional
	Image string `json:"image,omitempty"`
	// Command replaces the image's entrypoint.
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// Args replaces the image's arguments.
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
	// Env are environment variables, as in a container. KUBEOP_REVISION is always set.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom takes all keys of ConfigMaps and Secrets as environment variables.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Timeout of the Job, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// OnFailure says what follows when the Job fails: Stop holds the revision, which is not tried again until it changes or
	// forceAt asks for it; Continue only tells of it. Default Stop.
	// +kubebuilder:default=Stop
	// +optional
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// HookFailure says what follows a hook that failed.
// +kubebuilder:validation:Enum=Stop;Continue
type HookFailure string

const (
	// HookStop holds the revision.
	HookStop HookFailure = "Stop"
	// HookContinue goes on, and tells of it.
	HookContinue HookFailure = "Continue"
)

// Results of hooks, in status.hooks.
const (
	HookSucceeded = "Succeeded"
	HookFailed    = "Failed"
)

// Drift is what becomes of changes that others make to the app's objects.
type Drift struct {
	// Mode says whether such changes are undone, told in the condition Drifted, or not looked for. Default: Warn for type
	// Helm, as people expect of releases, and Correct for all others.
	// +optional
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore names fields that others may change. What an autoscaler scales needs no mention.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// DriftMode says what is done about drift.
// +kubebuilder:validation:Enum=Correct;Warn;Off
type DriftMode string

const (
	// DriftCorrect puts back what was changed or deleted, object by object; it makes no revision of a release.
	DriftCorrect DriftMode = "Correct"
	// DriftWarn tells of it.
	DriftWarn DriftMode = "Warn"
	// DriftOff does not look.
	DriftOff DriftMode = "Off"
)

// IgnoreRule names fields of objects.
type IgnoreRule struct {
	// Paths are JSON pointers (RFC 6901), such as "/spec/replicas"; "" or "/" is the whole object.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Paths []string `json:"paths"`
	// Target chooses the objects. Default: all.
	// +optional
	Target *kustomize.Selector `json:"target,omitempty"`
}
