package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePolicy chooses a tag. Exactly one of semver, alphabetical and numerical is set.
// +kubebuilder:validation:XValidation:rule="(has(self.semver) ? 1 : 0) + (has(self.alphabetical) ? 1 : 0) + (has(self.numerical) ? 1 : 0) == 1",message="exactly one of semver, alphabetical and numerical must be set"
type ImagePolicy struct {
	// SemVer chooses the highest version in a range, such as "^1.2" or ">=1.2.0-0" for pre-releases too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	SemVer string `json:"semver,omitempty"`
	// Alphabetical chooses the last tag in the order of letters, Descending the first.
	// +optional
	Alphabetical TagOrder `json:"alphabetical,omitempty"`
	// Numerical chooses the highest number, Descending the lowest.
	// +optional
	Numerical TagOrder `json:"numerical,omitempty"`
	// FilterTags leaves out the tags that do not match.
	// +optional
	FilterTags *TagFilter `json:"filterTags,omitempty"`
	// Interval between two looks at the registry. Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// TagOrder is the order in which tags are compared.
// +kubebuilder:validation:Enum=Ascending;Descending
type TagOrder string

// The orders of tags: the last one is chosen.
const (
	TagsAscending  TagOrder = "Ascending"
	TagsDescending TagOrder = "Descending"
)

// TagFilter chooses among tags by a regular expression (RE2).
type TagFilter struct {
	// Pattern that a tag must match, such as "^main-[a-f0-9]+-(?P<ts>[0-9]+)$".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern"`
	// Extract is what of the tag is compared, such as "$ts". Default: all of it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Extract string `json:"extract,omitempty"`
}

// Autoscale bounds a HorizontalPodAutoscaler. Without cpu and memory it aims at 80% of the requested CPU.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.min <= self.max",message="min must not be more than max"
type Autoscale struct {
	// Min is the least number of replicas. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Min *int32 `json:"min,omitempty"`
	// Max is the greatest number of replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Max int32 `json:"max"`
	// CPU is the average use to aim at, in percent of what the container requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	CPU *int32 `json:"cpu,omitempty"`
	// Memory is the average use to aim at, in percent of what the container requests.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Memory *int32 `json:"memory,omitempty"`
}

// ImageFiles are files of the app's folder.
type ImageFiles struct {
	// Path of a file or folder in the app's folder. Of a folder its own files are taken, not those of folders in it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	Path string `json:"path"`
	// MountPath is where the container sees it: a folder at this path, a file as this file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
}

// ImageSecretFiles are the keys of a Secret.
type ImageSecretFiles struct {
	// SecretRef names the Secret in the app's namespace.
	SecretRef LocalSecretReference `json:"secretRef"`
	// MountPath is the folder in which the container sees the keys as files.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
	// Optional starts the container also without the Secret. Default false.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ImageVolume is a place for data.
// +kubebuilder:validation:XValidation:rule="!(has(self.size) && has(self.claimName))",message="set size, which makes a claim, or claimName, which mounts one that exists, not both"
// +kubebuilder:validation:XValidation:rule="has(self.size) || !has(self.storageClassName)",message="storageClassName needs a size: it is for a claim that is made"
// +kubebuilder:validation:XValidation:rule="has(self.size) || has(self.claimName) || !has(self.accessMode)",message="accessMode needs a size or a claimName: a volume without lasts as long as its pod"
type ImageVolume struct {
	// Name of the volume. Its claim is "<app>-<name>", with movedFrom named after that app.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// MountPath is where the container sees it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
	// Size of the claim, such as 1Gi. It can grow where the storage class allows it, never shrink.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// ClaimName is a PersistentVolumeClaim of the project that exists, in place of a size. The app mounts it and does nothing else
	// with it: it is never changed or deleted for the app.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClaimName string `json:"claimName,omitempty"`
	// StorageClassName of the claim. Default: the cluster's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// AccessMode of the claim, of one that exists what it has. Only ReadWriteMany lets pods on several nodes share it. Default ReadWriteOnce.
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany;ReadOnlyMany
	// +optional
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}

// ImageJob is how a Job runs.
type ImageJob struct {
	// BackoffLimit is how often a failed pod is replaced. Default 6, as the API server's.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ActiveDeadlineSeconds is how long the Job may run. Default: without end.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy says what a schedule does while its last Job runs. Default Forbid.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +optional
	ConcurrencyPolicy string `json:"concurrencyPolicy,omitempty"`
}

// ImageStrategy is how old pods are replaced, as in a Deployment.
// +kubebuilder:validation:XValidation:rule="self.type == 'RollingUpdate' || !(has(self.maxSurge) || has(self.maxUnavailable))",message="maxSurge and maxUnavailable are for RollingUpdate"
type ImageStrategy struct {
	// Type of the strategy.
	// +kubebuilder:validation:Enum=RollingUpdate;Recreate
	Type string `json:"type"`
	// MaxSurge is how many pods, or percent, may be there beyond the replicas. Default 25%.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxUnavailable is how many pods, or percent, may be missing. Default 25%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// ImageSecurity is as whom the container runs.
type ImageSecurity struct {
	// RunAsUser is the user ID. Default: the image's, which must be a number and not 0.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group ID. Default: the image's.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup is the group that volumes belong to. Default: runAsGroup where that is set.
	// +kubebuilder:validation:Minimum=1
	// +optional
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// ReadOnlyRootFilesystem keeps the container from writing beside its volumes. Default false.
	// +optional
	ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem,omitempty"`
}

// AppHost is a name, and perhaps a path, under which an app is served.
type AppHost struct {
	// Host is the name.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Host string `json:"host"`
	// Path is the beginning of the paths that are served. Default "/".
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	// +optional
	Path string `json:"path,omitempty"`
	// Port is the name of the port that gets the traffic. Default: the first.
	// +kubebuilder:validation:MaxLength=15
	// +optional
	Port string `json:"port,omitempty"`
	// TLSSecretRef names a Secret of type kubernetes.io/tls in the app's namespace with the host's certificate. With a
	// Gateway, which has its own certificates, it is refused. Default: no TLS.
	// +optional
	TLSSecretRef *LocalSecretReference `json:"tlsSecretRef,omitempty"`
}
