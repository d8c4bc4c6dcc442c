package v1alpha1

import (
	"cmp"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Delivery defines how an app is delivered to the cluster, for all types.
type Delivery struct {
	// DependsOn are objects that must be ready before the app is delivered. If a commit changes both an app and a dependency in the same
	// repository, the app waits until the changed dependency is ready.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Hooks are Jobs that run once before and once after each new revision.
	Hooks Hooks `json:"hooks,omitzero"`
	// HealthCheckExprs are CEL expressions that define when objects of a kind are healthy, failed or in progress. They are for kinds
	// that kstatus does not know.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs,omitempty"`
	// Drift defines how the app reacts when others change its objects.
	Drift Drift `json:"drift,omitzero"`
	// Force deletes and recreates an object if the API server rejects a change of an immutable field. The object's data is lost and its
	// pods stop. It is not for type Helm, which has helm.upgrade.force. Default false: the app reports the field.
	Force bool `json:"force,omitempty"`
	// TakeOwnership adopts existing objects that no app, Helm release or other kubeop object owns. Only administrators can hand over
	// cluster-scoped objects. It is not for type Helm, which has helm.install.takeOwnership. Default false: the app reports the
	// conflicting object.
	TakeOwnership bool `json:"takeOwnership,omitempty"`
	// TargetNamespace is the namespace of all objects, also of those whose author wrote another one. It is for folders and charts that
	// name a namespace. In a tenant's app it can only be the namespace of the project. Default: an object that names another namespace
	// is refused.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// PodSecurity defines how the app's pods are brought to the Pod Security level of its namespace.
	PodSecurity PodSecurity `json:"podSecurity,omitzero"`
}

// PodSecurity defines how an app's pods are brought to the Pod Security level of its namespace.
type PodSecurity struct {
	// Fill defines what kubeop fills in where a pod or container leaves it out and the level would refuse it: seccompProfile
	// RuntimeDefault, runAsNonRoot true, allowPrivilegeEscalation false and capabilities.drop [ALL]. What is set is never changed.
	// Enabled fills in all of them, Disabled none. Default: all at level restricted, and seccompProfile at baseline.
	Fill PodSecurityFill `json:"fill,omitempty"`
}

// PodSecurityFill says whether kubeop completes the security contexts of pods.
// +kubebuilder:validation:Enum=Enabled;Disabled
type PodSecurityFill string

const (
	// FillEnabled fills in all that the level restricted asks for.
	FillEnabled PodSecurityFill = "Enabled"
	// FillDisabled fills in nothing.
	FillDisabled PodSecurityFill = "Disabled"
)

// Dependency is an object that must be ready first. It is an App, a Project of the same tenant, or any other object in a namespace of
// the tenant's projects. An App is in the same project unless project is set.
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) || !has(self.kind) || self.kind in ['App', 'Project']",message="apiVersion is required unless kind is App or Project"
// +kubebuilder:validation:XValidation:rule="!(has(self.kind) && self.kind == 'Project' && has(self.project))",message="project is not for kind Project: name is the project's"
// +kubebuilder:validation:XValidation:rule="!has(self.platform) || !self.platform || (has(self.project) && (!has(self.kind) || self.kind == 'App') && !has(self.apiVersion) && !has(self.readyExpr))",message="a dependency with platform: true is an App and needs project; apiVersion and readyExpr are not possible"
type Dependency struct {
	// APIVersion of the object, such as "batch/v1". Default for the kinds App and Project: kubeop's own.
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object. Default App.
	// +kubebuilder:default=App
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Project of the same tenant that the object is in. Default: the app's own.
	// +kubebuilder:validation:MaxLength=35
	Project string `json:"project,omitempty"`
	// Platform says that the object is an App of the platform itself, in the platform's project that Project names.
	Platform bool `json:"platform,omitempty"`
	// ReadyExpr is a CEL expression that is true when the object is ready. dep is the object, and self is the app without its status.
	// Default: an App or Project is ready by its condition Ready, other objects by kstatus.
	// +kubebuilder:validation:MaxLength=2048
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// GroupVersionKind returns the object's kind, with defaults.
func (d *Dependency) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(cmp.Or(d.APIVersion, GroupVersion.String()), cmp.Or(d.Kind, AppKind))
}

// Hooks are Jobs before and after the delivery of a revision.
type Hooks struct {
	// Pre hooks run one after the other before anything of a new revision is applied. One that fails stops the delivery.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Pre []Hook `json:"pre,omitempty"`
	// Post hooks run one after the other once the revision is healthy.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Post []Hook `json:"post,omitempty"`
}

// Hook is a Job with one container. It has the same security restrictions as an app of type Image.
type Hook struct {
	// Name of the hook. It is part of the Job's name and of messages.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Image to run. Default: the image of the delivered revision, for an app of type Image.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Image string `json:"image,omitempty"`
	// Command replaces the image's entrypoint.
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Args replaces the image's arguments.
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// Env are environment variables, as in a container. KUBEOP_REVISION is always set.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom takes all keys of ConfigMaps and Secrets as environment variables.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Timeout of the Job, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// OnFailure defines what happens when the Job fails. Stop holds the revision: it is not retried until it changes or forceAt requests
	// it. Continue only reports the failure. Default Stop.
	// +kubebuilder:default=Stop
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// HookFailure defines what happens after a hook failed.
// +kubebuilder:validation:Enum=Stop;Continue
type HookFailure string

const (
	// HookStop holds the revision.
	HookStop HookFailure = "Stop"
	// HookContinue continues, and reports the failure.
	HookContinue HookFailure = "Continue"
)

// Results of hooks, in status.hooks.
const (
	HookSucceeded = "Succeeded"
	HookFailed    = "Failed"
)

// Drift defines how the app reacts when others change its objects.
type Drift struct {
	// Mode defines whether such changes are reverted (Correct), reported in the condition Drifted (Warn), or ignored (Off). Default:
	// Warn for type Helm, as users expect of releases, and Correct for all others.
	Mode DriftMode `json:"mode,omitempty"`
	// Ignore names fields that others may change. The replicas that an autoscaler sets are ignored without an entry.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Ignore []IgnoreRule `json:"ignore,omitempty"`
}

// DriftMode is the reaction to drift.
// +kubebuilder:validation:Enum=Correct;Warn;Off
type DriftMode string

const (
	// DriftCorrect reverts changes and deletions, object by object. It creates no revision of a Helm release.
	DriftCorrect DriftMode = "Correct"
	// DriftWarn reports drift.
	DriftWarn DriftMode = "Warn"
	// DriftOff does not detect drift.
	DriftOff DriftMode = "Off"
)

// IgnoreRule names fields of objects in which drift is ignored.
type IgnoreRule struct {
	// Paths are JSON pointers (RFC 6901), such as "/spec/replicas". "" or "/" means the whole object.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Paths []string `json:"paths"`
	// Target selects the objects. Default: all.
	Target *kustomize.Selector `json:"target,omitempty"`
}
