package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PolicySpec says what the apps and people of tenants may have in the namespaces of their projects: rules, which objects have to satisfy, and
// settings, which kubeop writes into what the API server enforces anyway. Of these only PodSecurity has an action: the others can only refuse.
type PolicySpec struct {
	// Default: tenants whose spec.policies is empty are under this policy. Several policies can be default. Default false.
	Default bool `json:"default,omitempty"`

	PolicyRules `json:",inline"`

	// Egress is what pods may connect to outside of the cluster. kubeop writes it into the NetworkPolicy of each project.
	Egress *EgressRules `json:"egress,omitempty"`
	// Quota is how much a project may have. kubeop writes it into the ResourceQuota of each project.
	Quota *QuotaRules `json:"quota,omitempty"`
	// Limits are those of containers and claims. kubeop writes them into the LimitRange of each project.
	Limits *LimitRules `json:"limits,omitempty"`
	// PodSecurity is the Pod Security level that pods have to satisfy. kubeop writes it into the labels of the namespace of each project.
	PodSecurity *PodSecurityRules `json:"podSecurity,omitempty"`
}

// PodSecurityRules require a level of the Pod Security Standards. Of several policies and spec.podSecurity of the Tenant the strictest level
// holds, with the newest version that one of the policies names, so that a pod satisfies each of them. If the Tenant's level is stricter than those of all
// policies, the version is latest.
type PodSecurityRules struct {
	// Action for pods that break the level: Deny, Warn or Audit. A level that is only warned about or recorded changes nothing of the level that the namespace enforces. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Level is restricted or baseline. No policy allows more than a Tenant can.
	// +kubebuilder:validation:Enum=restricted;baseline
	Level string `json:"level"`
	// Version is the minor version of Kubernetes whose checks hold, such as v1.34, or latest for those of the API server. A version that is newer than
	// the API server is the API server's. Default latest.
	// +kubebuilder:validation:Pattern=`^(latest|v1\.(0|[1-9][0-9]{0,2}))$`
	// +kubebuilder:default=latest
	Version string `json:"version,omitempty"`
}

// LimitRules limit the processors, the memory and the ephemeral storage of each container (cpu, memory, ephemeral-storage), and the size of each
// claim, as a LimitRange does. Of several policies, the smallest maximum, ratio and default of each resource hold, and the largest minimum. Where a
// minimum is then above a maximum, the maximum holds. Package limitrange has the defaults.
type LimitRules struct {
	// Max is the most that a container may request or have as a limit.
	Max corev1.ResourceList `json:"max,omitempty"`
	// Min is the least that a container may request or have as a limit.
	Min corev1.ResourceList `json:"min,omitempty"`
	// Default are the limits of containers that have none, if spec.limits of the Project has none. Default: memory 256Mi, ephemeral-storage 10Gi.
	// Where there is only a ratio, it is the request times that; where there is only a maximum, the maximum.
	Default corev1.ResourceList `json:"default,omitempty"`
	// DefaultRequest are the requests of containers that have neither requests nor limits, if spec.limits of the Project has none. Default:
	// cpu 50m, memory 64Mi, ephemeral-storage 64Mi.
	DefaultRequest corev1.ResourceList `json:"defaultRequest,omitempty"`
	// Ratio is how many times its request the limit of a container may be.
	Ratio corev1.ResourceList `json:"ratio,omitempty"`
	// Claims are the sizes that each claim may request.
	Claims *ClaimSizes `json:"claims,omitempty"`
}

// ClaimSizes are the sizes that a claim may request.
type ClaimSizes struct {
	// Max is the largest size. Default: what the quota of the project allows.
	Max *resource.Quantity `json:"max,omitempty"`
	// Min is the smallest size. Default: none.
	Min *resource.Quantity `json:"min,omitempty"`
}

// QuotaRules limit the quota of each project, with the names of a ResourceQuota, such as requests.cpu. Of each resource, the smallest amount of several
// policies, and of spec.quota of the Tenant for the maximum, holds. Package quota has the defaults.
type QuotaRules struct {
	// Max is the most that a project may have. A project that already requests more has this amount. Default: what spec.quota of the Tenant
	// says and, for other resources, what a project has by default.
	Max corev1.ResourceList `json:"max,omitempty"`
	// Default is what a project has that requests nothing, if Max allows it. Default: as in spec.quota of a Project.
	Default corev1.ResourceList `json:"default,omitempty"`
}

// EgressRules limit the connections of pods to addresses outside of the cluster. Several policies, and spec.egress of the Tenant if it is set,
// have to allow a connection; if none of them says anything, there are none. Addresses of the cluster itself are never allowed.
type EgressRules struct {
	// CIDRs are address ranges.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(c, isCIDR(c))",message="every entry of cidrs must be a CIDR, such as 203.0.113.0/24 or 2001:db8::/32"
	// +listType=set
	CIDRs []string `json:"cidrs"`
	// Ports at these addresses. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Ports []EgressPort `json:"ports,omitempty"`
}

// EgressPort is a port or a range of ports.
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort must not be below port"
type EgressPort struct {
	// Protocol is TCP, UDP or SCTP. Default TCP.
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	// +kubebuilder:default=TCP
	Protocol string `json:"protocol,omitempty"`
	// Port is a number from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// EndPort is the last port of a range that begins with Port. Default: Port alone.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	EndPort int32 `json:"endPort,omitempty"`
}

// NodePortRange is a port of nodes or a range of them.
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort must not be below port"
type NodePortRange struct {
	// Port is a number from 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
	// EndPort is the last port of a range that begins with Port. Default: Port alone.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	EndPort int32 `json:"endPort,omitempty"`
}

// ClassRules limits the classes that objects name. An object that names none gets that of Defaults, or the cluster's default class, before it is checked.
// +kubebuilder:validation:XValidation:rule="!has(self.defaults) || (!has(self.defaults.ingress) || !has(self.ingress) || self.defaults.ingress in self.ingress) && (!has(self.defaults.gateway) || !has(self.gateway) || self.defaults.gateway in self.gateway) && (!has(self.defaults.priority) || !has(self.priority) || self.defaults.priority in self.priority) && (!has(self.defaults.runtime) || !has(self.runtime) || self.defaults.runtime in self.runtime)",message="each class of defaults must be in the list of the same name"
type ClassRules struct {
	// Action for objects that break this rule: Deny, Warn or Audit. Default Deny.
	// +kubebuilder:default=Deny
	Action PolicyAction `json:"action,omitempty"`
	// Storage are the StorageClasses that claims may name, also those in a StatefulSet's templates and in pods' ephemeral volumes.
	// Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Storage []string `json:"storage,omitempty"`
	// VolumeAttributes are the VolumeAttributesClasses that the same claims may name. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	VolumeAttributes []string `json:"volumeAttributes,omitempty"`
	// Ingress are the IngressClasses that Ingresses may name. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Ingress []string `json:"ingress,omitempty"`
	// Gateway are the GatewayClasses that Gateways may name. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Gateway []string `json:"gateway,omitempty"`
	// Priority are the PriorityClasses that pods may name, among those that spec.priorityClasses of the Tenant allows. Default: all that the Tenant allows.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Priority []string `json:"priority,omitempty"`
	// Runtime are the RuntimeClasses that pods may name. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +listType=set
	Runtime []string `json:"runtime,omitempty"`
	// Defaults are the classes that objects get that name none, with the action Deny. Default: those of the cluster.
	Defaults *ClassDefaults `json:"defaults,omitempty"`
}

// ClassDefaults are classes of what names none: kubeop writes them into apps, and the API server into new pods, Ingresses and Gateways, from Kubernetes 1.36.
// There they come after the defaults of the cluster. StorageClasses are not among them: existing claims and StatefulSets cannot change theirs.
type ClassDefaults struct {
	// Ingress is the IngressClass of Ingresses.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Ingress string `json:"ingress,omitempty"`
	// Gateway is the GatewayClass of Gateways.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Gateway string `json:"gateway,omitempty"`
	// Priority is the PriorityClass of pods. spec.priorityClasses of the Tenant has to allow it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Priority string `json:"priority,omitempty"`
	// Runtime is the RuntimeClass of pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Runtime string `json:"runtime,omitempty"`
}
