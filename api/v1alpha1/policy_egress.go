package v1alpha1

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
