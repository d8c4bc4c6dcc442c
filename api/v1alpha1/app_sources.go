package v1alpha1

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImageSource runs a container image as a Deployment; with ports also as a Service.
// +kubebuilder:validation:XValidation:rule="has(self.ports) || !has(self.probes) || ((!has(self.probes.readiness) || has(self.probes.readiness.port) || has(self.probes.readiness.command)) && (!has(self.probes.liveness) || has(self.probes.liveness.port) || has(self.probes.liveness.command)) && (!has(self.probes.startup) || has(self.probes.startup.port) || has(self.probes.startup.command)))",message="a probe by path or tcp needs a port: set the probe's port, or image.ports"
type ImageSource struct {
	// Reference of the image, as "registry/name:tag" or "registry/name@sha256:…".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Reference string `json:"reference"`
	// Replicas to run. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Ports the container listens on; each becomes a port of the Service, where no two may be the same.
	// +kubebuilder:validation:XValidation:rule="!self.all(p, has(p.port)) || self.all(a, self.exists_one(b, (has(a.servicePort) ? a.servicePort : a.port) == (has(b.servicePort) ? b.servicePort : b.port) && a.protocol == b.protocol))",message="two of the ports are the same port of the Service; give them a different servicePort"
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ImagePort `json:"ports,omitempty"`
	// Env are environment variables, as in a container.
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
	// Command replaces the image's entrypoint.
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// Args replaces the image's arguments.
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
	// Resources of the container. Default: the project's limits.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Probes of the container. Default: a TCP readiness probe of the first port.
	// +optional
	Probes Probes `json:"probes,omitzero"`
	// ImagePullPolicy of the container. Default: the API server's (Always for the tag latest, else IfNotPresent).
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePort is a port of the container and of the Service.
type ImagePort struct {
	// Name of the port.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('[a-z]')",message="a port name needs a letter"
	Name string `json:"name"`
	// Port the container listens on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// ServicePort is the Service's port. Default: port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ServicePort int32 `json:"servicePort,omitempty"`
	// Protocol of the port. Default TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Probes are the container's probes, by HTTP path or as full probes.
type Probes struct {
	// Readiness decides whether the pod gets traffic.
	// +optional
	Readiness *Probe `json:"readiness,omitempty"`
	// Liveness decides whether the container is restarted.
	// +optional
	Liveness *Probe `json:"liveness,omitempty"`
	// Startup holds the other probes back until it succeeds.
	// +optional
	Startup *Probe `json:"startup,omitempty"`
}

// Probe asks the container how it is; exactly one of path, tcp and command is set.
// +kubebuilder:validation:XValidation:rule="(has(self.path) ? 1 : 0) + (has(self.tcp) ? 1 : 0) + (has(self.command) ? 1 : 0) == 1",message="exactly one of path, tcp and command must be set"
type Probe struct {
	// Path to GET over HTTP.
	// +kubebuilder:validation:Pattern=`^/`
	// +optional
	Path string `json:"path,omitempty"`
	// TCP connects to the port when true.
	// +kubebuilder:validation:Enum=true
	// +optional
	TCP bool `json:"tcp,omitempty"`
	// Command to run in the container.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// Port by number or name, for path and tcp. Default: the first port.
	// +optional
	Port *intstr.IntOrString `json:"port,omitempty"`
	// PeriodSeconds between two probes. Default 10.
	// +kubebuilder:validation:Minimum=1
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// FailureThreshold is how many failures in a row count. Default 3.
	// +kubebuilder:validation:Minimum=1
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// InitialDelaySeconds before the first probe. Default 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// TimeoutSeconds of one probe. Default 1.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// GitSource delivers the manifests of a folder: built with kustomize when it holds a kustomization.yaml, else every
// .yaml, .yml and .json file below it.
type GitSource struct {
	// URL to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url"`
	// Ref to follow. Default: the branch the remote's HEAD names.
	// +optional
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the folder. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	// +optional
	Path string `json:"path,omitempty"`
	// SecretRef names a Secret in the app's namespace with the credentials: username and password, bearerToken, or
	// identity with known_hosts (SSH); ca.crt adds a certificate authority.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
}

// HelmSource delivers a chart from a Helm repository, an OCI registry, or a folder beside app.yaml.
// +kubebuilder:validation:XValidation:rule="has(self.path) != has(self.repository)",message="exactly one of repository and path must be set"
// +kubebuilder:validation:XValidation:rule="has(self.chart) == has(self.repository)",message="chart is required with repository, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || has(self.repository)",message="version needs repository; a chart at path has the version its Chart.yaml says"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || has(self.repository)",message="secretRef needs repository"
// +kubebuilder:validation:XValidation:rule="!has(self.insecure) || !self.insecure || (has(self.repository) && self.repository.startsWith('oci://'))",message="insecure is for an oci:// repository only"
// +kubebuilder:validation:XValidation:rule="has(self.releaseName) == has(oldSelf.releaseName) && (!has(self.releaseName) || self.releaseName == oldSelf.releaseName)",message="releaseName is immutable: remove the app and add it again"
type HelmSource struct {
	// Repository is the https:// URL of a Helm repository or the oci:// URL of the registry path that holds the chart.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|oci)://[^\s]+$`
	// +optional
	Repository string `json:"repository,omitempty"`
	// Chart is the chart's name in the repository.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$`
	// +optional
	Chart string `json:"chart,omitempty"`
	// Version is a version or a semver range; the newest that matches is taken. Default "*": the newest stable.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Version string `json:"version,omitempty"`
	// SecretRef names a Secret in the app's namespace with the repository's credentials: username and password, or
	// .dockerconfigjson; ca.crt adds a certificate authority.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Insecure allows an oci:// registry without TLS; an http:// repository says so in its URL. Default false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// Path of a chart folder in the app's folder, such as "chart".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	// +optional
	Path string `json:"path,omitempty"`
	// ReleaseName is the name of the release. Immutable. Default: the app's name.
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// Values override everything else.
	// +optional
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// ValuesFiles are files of the app's folder, merged in order over the chart's own values.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(f, !f.startsWith('/') && !f.split('/').exists(p, p == '..'))",message="valuesFiles must stay inside the app's folder"
	// +listType=atomic
	// +optional
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// ValuesFrom are ConfigMaps and Secrets of the app's namespace, merged in order over valuesFiles.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
}

// ValuesReference takes values from a ConfigMap or Secret.
type ValuesReference struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name of the object, in the app's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// ValuesKey is the key that holds the values as YAML. Default values.yaml.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ValuesKey string `json:"valuesKey,omitempty"`
	// TargetPath sets the key's content as one value at this path, such as "image.tag", instead of merging it as YAML.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TargetPath string `json:"targetPath,omitempty"`
	// Optional makes a missing object or key no error.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// RawSource delivers manifests as they are.
// +kubebuilder:validation:XValidation:rule="has(self.manifests) != has(self.path)",message="exactly one of manifests and path must be set"
type RawSource struct {
	// Manifests are the objects themselves.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:pruning:PreserveUnknownFields
	// +listType=atomic
	// +optional
	Manifests []runtime.RawExtension `json:"manifests,omitempty"`
	// Path of a folder in the app's folder, such as "manifests".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	// +optional
	Path string `json:"path,omitempty"`
}
