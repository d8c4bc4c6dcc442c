package v1alpha1

import corev1 "k8s.io/api/core/v1"

// PolicySpec says what the apps and people of tenants may have in the namespaces of their projects: rules, which objects have to satisfy, and
// settings, which have no action because kubeop writes them into what the API server enforces anyway.
type PolicySpec struct {
	// Default: tenants whose spec.policies is empty are under this policy. Several policies can be default. Default false.
	Default bool `json:"default,omitempty"`

	PolicyRules `json:",inline"`

	// Egress is what pods may connect to outside of the cluster. kubeop writes it into the NetworkPolicy of each project.
	Egress *EgressRules `json:"egress,omitempty"`
	// Quota is how much a project may have. kubeop writes it into the ResourceQuota of each project.
	Quota *QuotaRules `json:"quota,omitempty"`
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
