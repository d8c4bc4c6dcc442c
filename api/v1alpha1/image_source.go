package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImageSource runs a container image as a Deployment, with a Service if it has ports, or as a CronJob or a Job.
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscale))",message="set replicas or autoscale, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.schedule) || has(self.job)) || !(has(self.ports) || has(self.replicas) || has(self.autoscale) || has(self.strategy))",message="ports, replicas, autoscale and strategy are for what runs all the time, not for schedule and job"
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="timeZone is for schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.policy) || has(self.policy.write) || !(self.reference.contains('@') || self.reference.split('/')[size(self.reference.split('/')) - 1].contains(':'))",message="with a policy, reference has no tag and no digest: the policy chooses them; only with policy.write does it say here what it chose"
// +kubebuilder:validation:XValidation:rule="has(self.ports) || !has(self.probes) || ((!has(self.probes.readiness) || has(self.probes.readiness.port) || has(self.probes.readiness.command)) && (!has(self.probes.liveness) || has(self.probes.liveness.port) || has(self.probes.liveness.command)) && (!has(self.probes.startup) || has(self.probes.startup.port) || has(self.probes.startup.command)))",message="a probe by path or tcp needs a port: set the probe's port, or image.ports"
type ImageSource struct {
	// Reference of the image, as "registry/name:tag" or "registry/name@sha256:…". With a policy it is "registry/name", unless
	// policy.write is set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Reference string `json:"reference"`
	// Policy chooses one of the registry's tags and pins its digest. Without a policy the reference is used without a change.
	Policy *ImagePolicy `json:"policy,omitempty"`
	// PullSecrets name Secrets of type kubernetes.io/dockerconfigjson in the app's namespace, with the registry's credentials.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	PullSecrets []LocalSecretReference `json:"pullSecrets,omitempty"`
	// Replicas to run. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`
	// Autoscale lets a HorizontalPodAutoscaler set the replicas.
	Autoscale *Autoscale `json:"autoscale,omitempty"`
	// Ports that the container listens on. Each one becomes a port of the Service, and no two Service ports may be the same.
	// +kubebuilder:validation:XValidation:rule="!self.all(p, has(p.port)) || self.all(a, self.exists_one(b, (has(a.servicePort) ? a.servicePort : a.port) == (has(b.servicePort) ? b.servicePort : b.port) && a.protocol == b.protocol))",message="two of the ports are the same port of the Service; give them a different servicePort"
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Ports []ImagePort `json:"ports,omitempty"`
	// Env are environment variables, as in a container.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom uses all keys of ConfigMaps and Secrets as environment variables.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// Command replaces the image's entrypoint.
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Args replaces the image's arguments.
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// Resources of the container. Default: the project's spec.limits.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Probes of the container. Default: a TCP readiness probe on the first port.
	Probes Probes `json:"probes,omitzero"`
	// ImagePullPolicy of the container. Default: Always for the tag latest, otherwise IfNotPresent.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ConfigFiles are files in the app's folder that are mounted into the container. If one changes, the pods are replaced.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=mountPath
	ConfigFiles []ImageFiles `json:"configFiles,omitempty"`
	// SecretFiles are Secrets in the app's namespace whose keys are mounted as files.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=mountPath
	SecretFiles []ImageSecretFiles `json:"secretFiles,omitempty"`
	// Volumes hold data. With a size, the data is in a new PersistentVolumeClaim, which is kept after the app. With a claimName, it is
	// in an existing claim. With neither, it is lost with the pod.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Volumes []ImageVolume `json:"volumes,omitempty"`
	// Schedule runs the image as a CronJob. The format is that of crontab(5): "0 3 * * *", or @daily.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule,omitempty"`
	// TimeZone of the schedule, such as "Europe/Berlin". Default: the time zone of the cluster's controller manager, usually UTC.
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// Job runs the image as a Job, once for each revision. With a schedule it configures the Jobs of the schedule.
	Job *ImageJob `json:"job,omitempty"`
	// Strategy defines how old pods are replaced. Default RollingUpdate, or Recreate if a volume can be mounted only once.
	Strategy *ImageStrategy `json:"strategy,omitempty"`
	// Security changes the container's defaults: no root user, no capabilities, no privilege escalation.
	Security ImageSecurity `json:"security,omitzero"`
	// TerminationGracePeriodSeconds is how long a pod may take to stop. Default 30.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	ImagePod `json:",inline"`

	// Patches change the objects that are made from the other fields, by strategic merge or JSON 6902, for what no field offers.
	// Each must match an object. What may not be set is refused in the result.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Patches []kustomize.Patch `json:"patches,omitempty"`
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
	ServicePort int32 `json:"servicePort,omitempty"`
	// Protocol of the port. Default TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// Probes are the probes of the container.
type Probes struct {
	// Readiness decides whether the pod receives traffic.
	Readiness *Probe `json:"readiness,omitempty"`
	// Liveness decides whether the container is restarted.
	Liveness *Probe `json:"liveness,omitempty"`
	// Startup delays the other probes until it succeeds.
	Startup *Probe `json:"startup,omitempty"`
}

// Probe is a check of the container. Exactly one of path, tcp and command is set.
// +kubebuilder:validation:XValidation:rule="(has(self.path) ? 1 : 0) + (has(self.tcp) ? 1 : 0) + (has(self.command) ? 1 : 0) == 1",message="exactly one of path, tcp and command must be set"
type Probe struct {
	// Path to GET over HTTP.
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`
	// TCP connects to the port when true.
	// +kubebuilder:validation:Enum=true
	TCP bool `json:"tcp,omitempty"`
	// Command to run in the container.
	// +kubebuilder:validation:MinItems=1
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// Port by number or name, for path and tcp. Default: the first port.
	Port *intstr.IntOrString `json:"port,omitempty"`
	// PeriodSeconds between two probes. Default 10.
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// FailureThreshold is how many failures in a row make the probe fail. Default 3.
	// +kubebuilder:validation:Minimum=1
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// InitialDelaySeconds before the first probe. Default 0.
	// +kubebuilder:validation:Minimum=0
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// TimeoutSeconds of one probe. Default 1.
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}
