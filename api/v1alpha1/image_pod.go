package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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
