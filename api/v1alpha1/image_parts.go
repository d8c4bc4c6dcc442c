package v1alpha1

import (
	"slices"

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
	SemVer string `json:"semver,omitempty"`
	// Alphabetical sorts the tags alphabetically and chooses the last one.
	Alphabetical TagOrder `json:"alphabetical,omitempty"`
	// Numerical sorts the tags by number and chooses the last one.
	Numerical TagOrder `json:"numerical,omitempty"`
	// FilterTags excludes tags that do not match.
	FilterTags *TagFilter `json:"filterTags,omitempty"`
	// Interval between two queries of the registry. Default 5m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Write writes what the policy chooses into spec.image.reference of the app's file in Git, as a commit to the branch that the repository
	// follows, or as a pull request. The app then runs what the file says, and the reference may have a tag. Without write, the app runs what
	// the policy chooses, and Git does not say which.
	Write WriteMode `json:"write,omitempty"`
}

// WriteMode is how a change is written to Git.
// +kubebuilder:validation:Enum=Commit;PullRequest
type WriteMode string

// The ways to write to Git.
const (
	// WriteCommit commits to the branch that the repository follows.
	WriteCommit WriteMode = "Commit"
	// WritePullRequest commits to a new branch, and opens a pull request.
	WritePullRequest WriteMode = "PullRequest"
)

// TagOrder is the order in which tags are sorted.
// +kubebuilder:validation:Enum=Ascending;Descending
type TagOrder string

// The sort orders. A policy chooses the last tag.
const (
	TagsAscending  TagOrder = "Ascending"
	TagsDescending TagOrder = "Descending"
)

// TagFilter selects tags by a regular expression (RE2).
type TagFilter struct {
	// Pattern that a tag must match, such as "^main-[a-f0-9]+-(?P<ts>[0-9]+)$".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern"`
	// Extract is the part of the tag that is compared, such as "$ts". Default: the whole tag.
	// +kubebuilder:validation:MaxLength=256
	Extract string `json:"extract,omitempty"`
}

// Autoscale configures a HorizontalPodAutoscaler. If neither cpu nor memory is set, its target is 80% of the requested CPU.
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.min <= self.max",message="min must not be more than max"
type Autoscale struct {
	// Min is the minimum number of replicas. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Min *int32 `json:"min,omitempty"`
	// Max is the maximum number of replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Max int32 `json:"max"`
	// CPU is the target for the average CPU usage, in percent of the container's request.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	CPU *int32 `json:"cpu,omitempty"`
	// Memory is the target for the average memory usage, in percent of the container's request.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Memory *int32 `json:"memory,omitempty"`
}

// ImageFiles are files of the app's folder.
type ImageFiles struct {
	// Path of a file or folder in the app's folder. Files in subfolders of the folder are not included.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	Path string `json:"path"`
	// MountPath is the path in the container: of the folder if path is a folder, of the file if path is a file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
}

// ImageSecretFiles are the keys of a Secret.
type ImageSecretFiles struct {
	// SecretRef names the Secret in the app's namespace.
	SecretRef LocalSecretReference `json:"secretRef"`
	// MountPath is the folder in the container. It holds one file for each key.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
	// Optional starts the container even if the Secret does not exist. Default false.
	Optional bool `json:"optional,omitempty"`
}

// ImageVolume is a volume for data.
// +kubebuilder:validation:XValidation:rule="!(has(self.size) && has(self.claimName))",message="set size, which makes a claim, or claimName, which mounts one that exists, not both"
// +kubebuilder:validation:XValidation:rule="has(self.size) || !has(self.storageClassName)",message="storageClassName needs a size: it is for a claim that is made"
// +kubebuilder:validation:XValidation:rule="has(self.size) || has(self.claimName) || !has(self.accessMode)",message="accessMode needs a size or a claimName: a volume without lasts as long as its pod"
type ImageVolume struct {
	// Name of the volume. Its claim is "<app>-<name>". With movedFrom, <app> is the app named there.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// MountPath is the path in the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
	// Size of the claim, such as 1Gi. It can grow if the storage class allows it. It can never shrink.
	Size *resource.Quantity `json:"size,omitempty"`
	// ClaimName is an existing PersistentVolumeClaim of the project, used instead of size. The app only mounts it. kubeop never changes
	// or deletes it for the app.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
	// StorageClassName of the claim. Default: the cluster's default class.
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
	// AccessMode of the claim. For an existing claim it is the mode that the claim has. Only ReadWriteMany lets pods on several nodes
	// share a claim. Default ReadWriteOnce.
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany;ReadOnlyMany
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}

// ImageJob configures a Job.
type ImageJob struct {
	// BackoffLimit is how often a failed pod is replaced. Default 6, as in Kubernetes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ActiveDeadlineSeconds is how long the Job may run. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ConcurrencyPolicy defines what the schedule does while its last Job still runs. Default Forbid.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	ConcurrencyPolicy string `json:"concurrencyPolicy,omitempty"`
}

// ImageStrategy defines how old pods are replaced, as in a Deployment.
// +kubebuilder:validation:XValidation:rule="self.type == 'RollingUpdate' || !(has(self.maxSurge) || has(self.maxUnavailable))",message="maxSurge and maxUnavailable are for RollingUpdate"
type ImageStrategy struct {
	// Type of the strategy.
	// +kubebuilder:validation:Enum=RollingUpdate;Recreate
	Type string `json:"type"`
	// MaxSurge is the number, or percentage, of pods above the desired replicas during an update. Default 25%.
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// MaxUnavailable is the number, or percentage, of pods that may be unavailable during an update. Default 25%.
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// ImageSecurity defines the user and the permissions of the container.
type ImageSecurity struct {
	// RunAsUser is the user ID. Default: the image's user, which must be a number other than 0.
	// +kubebuilder:validation:Minimum=1
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group ID. Default: the image's group.
	// +kubebuilder:validation:Minimum=1
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup is the group that owns the volumes. Default: runAsGroup, if set.
	// +kubebuilder:validation:Minimum=1
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// ReadOnlyRootFilesystem lets the container write to its volumes only. Default false.
	ReadOnlyRootFilesystem bool `json:"readOnlyRootFilesystem,omitempty"`
}

// AppHost is a host name, with an optional path, under which an app is served.
type AppHost struct {
	// Host is the host name.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`
	Host string `json:"host"`
	// Path is the prefix of the paths that are served. Default "/".
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
	// Port is the name of the port that receives the traffic. Default: the first port.
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port,omitempty"`
	// TLSSecretRef names a Secret of type kubernetes.io/tls in the app's namespace with the host's certificate. It is rejected if the
	// platform has a Gateway, which has its own certificates. Default: no TLS.
	TLSSecretRef *LocalSecretReference `json:"tlsSecretRef,omitempty"`
}

// ImagePod are fields of the pods of an Image app, named as in a pod. kubeop refuses what a tenant's pods may not have: see docs/image.md.
type ImagePod struct {
	// ServiceAccountName is a service account of the project, such as one that an app of type Raw delivers. Default: default.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('kubeop-')",message="service accounts that start with kubeop- are the platform's"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// AutomountServiceAccountToken gives the containers the service account's token for the API server. Default false.
	AutomountServiceAccountToken bool `json:"automountServiceAccountToken,omitempty"`
	// InitContainers run one after the other before the app's own container. Those with restartPolicy Always are sidecars: they run as
	// long as the pod.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	InitContainers []ImageContainer `json:"initContainers,omitempty"`
	// NodeSelector are labels that a node must have.
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of taints. A tenant's pods may tolerate the taints that administrators allow with spec.taints of the Tenant.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, has(t.key) && size(t.key) > 0)",message="a toleration needs a key: without one it tolerates every taint"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator == 'Equal' || (t.operator == 'Exists' && !has(t.value)))",message="operator is Equal, or Exists without a value"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))",message="tolerationSeconds needs effect: NoExecute"
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Affinity to nodes and to pods of the project.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints replace the default, which distributes several replicas over nodes and zones if possible. One without
	// labelSelector counts the pods of the app.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// ImageContainer is a container that runs before the app's own container, or beside it.
// +kubebuilder:validation:XValidation:rule="has(self.restartPolicy) || !has(self.probes)",message="probes need restartPolicy: Always; a container without it ends before the app starts"
// +kubebuilder:validation:XValidation:rule="!has(self.probes) || ((!has(self.probes.readiness) || has(self.probes.readiness.port) || has(self.probes.readiness.command)) && (!has(self.probes.liveness) || has(self.probes.liveness.port) || has(self.probes.liveness.command)) && (!has(self.probes.startup) || has(self.probes.startup.port) || has(self.probes.startup.command)))",message="a probe of an init container by path or tcp needs a port"
type ImageContainer struct {
	// Name of the container. It must differ from the app's name, which the app's own container has.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Image as "registry/name:tag" or "registry/name@sha256:…". Default: the app's own image.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Image string `json:"image,omitempty"`
	// ImagePullPolicy of the container. Default: Always for the tag latest, otherwise IfNotPresent.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// RestartPolicy Always makes the container a sidecar. Without it the container must end before the next one starts.
	// +kubebuilder:validation:Enum=Always
	RestartPolicy corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`
	// Command replaces the image's entrypoint.
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Args replaces the image's arguments.
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// Env are environment variables, as in a container.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom uses all keys of ConfigMaps and Secrets as environment variables.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Resources of the container. Default: the project's spec.limits.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Probes of a sidecar. Default: none.
	Probes Probes `json:"probes,omitzero"`
	// VolumeMounts mount volumes of the app into this container. Default: none, not even those of the app's own container.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=mountPath
	VolumeMounts []ImageVolumeMount `json:"volumeMounts,omitempty"`
	// Security changes the container's user. Default: that of the app's own container.
	Security ContainerSecurity `json:"security,omitzero"`
}

// ImageVolumeMount mounts one of the volumes of an Image app.
type ImageVolumeMount struct {
	// Name of the volume in image.volumes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// MountPath is the path in the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	MountPath string `json:"mountPath"`
	// SubPath is the folder of the volume to mount. Default: its root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="subPath must stay inside the volume"
	SubPath string `json:"subPath,omitempty"`
	// ReadOnly mounts the volume so that the container cannot write to it. Default false.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ContainerSecurity defines the user of a container.
type ContainerSecurity struct {
	// RunAsUser is the user ID.
	// +kubebuilder:validation:Minimum=1
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group ID.
	// +kubebuilder:validation:Minimum=1
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// ReadOnlyRootFilesystem lets the container write to its volumes only. Default: as in the app's own container.
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`
}

// AppIngress are settings of the Ingress of an Image app.
type AppIngress struct {
	// IngressClassName names the IngressClass. Default: ingressClassName in the chart's values, else the cluster's default class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	IngressClassName string `json:"ingressClassName,omitempty"`
	// Annotations of the Ingress, for its controller. With cert-manager.io/issuer or cert-manager.io/cluster-issuer, hosts without a
	// tlsSecretRef get certificates in Secrets "<app>.<host>-tls". Annotations that reach beyond the app are refused: see docs/image.md.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('kubernetes.io/ingress.class' in self)",message="set ingressClassName in place of the annotation kubernetes.io/ingress.class"
	// +kubebuilder:validation:XValidation:rule="!('cert-manager.io/issuer' in self && 'cert-manager.io/cluster-issuer' in self)",message="set one of the annotations cert-manager.io/issuer and cert-manager.io/cluster-issuer, not both"
	Annotations map[string]string `json:"annotations,omitempty"`
}

// CertificateIssuers are the annotations of an Ingress with which cert-manager makes certificates for the hosts of its TLS section
// (https://cert-manager.io/docs/usage/ingress/#supported-annotations).
var CertificateIssuers = []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"}

// Issued reports whether cert-manager makes certificates for the hosts without a tlsSecretRef; false for nil.
func (i *AppIngress) Issued() bool {
	return i != nil && slices.ContainsFunc(CertificateIssuers, func(issuer string) bool { return i.Annotations[issuer] != "" })
}
