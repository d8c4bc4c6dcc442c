package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GuardrailsName is the name of the Guardrails in the namespace of each project.
const GuardrailsName = "kubeop"

// AppliedPolicy are the rules of one policy that have the same action.
type AppliedPolicy struct {
	// Policy is the name of the Policy; "tenant.yaml" for spec.domains of the Tenant.
	Policy string `json:"policy"`
	// Signatures identifies images.verify of the policy among the lists in signed; "" without one.
	// +kubebuilder:validation:MaxLength=64
	Signatures string `json:"signatures,omitempty"`

	PolicyRules `json:",inline"`
}

// GuardrailsSpec are the rules of all policies that hold in a project, by their actions.
type GuardrailsSpec struct {
	// Deny are rules that objects have to satisfy.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	Deny []AppliedPolicy `json:"deny,omitempty"`
	// Warn are rules that kubeop and the API server warn about.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Warn []AppliedPolicy `json:"warn,omitempty"`
	// Audit are rules whose violations are only recorded.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Audit []AppliedPolicy `json:"audit,omitempty"`
	// Hostnames are the host names that the project has. Without it, as kubeop left it before it knew HostnameClaims, every host name can
	// be served.
	// +structType=atomic
	Hostnames *ClaimedHostnames `json:"hostnames,omitempty"`
	// PodSecurity is the Pod Security level that the namespace enforces. Without it no policy requires one, and that of the Tenant holds.
	// +structType=atomic
	PodSecurity *AppliedPodSecurity `json:"podSecurity,omitempty"`
	// PodSecurityNotices are the Pod Security levels of policies that only warn, in an entry with the action Warn, and of those that only record, in one with Audit.
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	PodSecurityNotices []AppliedPodSecurity `json:"podSecurityNotices,omitempty"`
	// Limits are those of policies for containers and claims, and what the Project says about defaults. kubeop refuses an app that breaks them; the LimitRange of the
	// namespace has them for everybody else. Without them no policy limits containers and claims.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	Limits []AppliedLimits `json:"limits,omitempty"`
	// Network is what NetworkPolicies of apps may open. It is set once spec.network.policies of the Project was Own, and stays. Without it, apps
	// have no NetworkPolicies.
	// +structType=atomic
	Network *AllowedNetwork `json:"network,omitempty"`
	// Added are the labels and annotations that objects get, without those about which policies contradict each other.
	// +structType=atomic
	Added *AddedMetadata `json:"added,omitempty"`
	// Signed are the images whose signatures kubeop verified. An image that images.verify of a policy is about and that is not in the list of the policy
	// breaks that rule.
	// +kubebuilder:validation:MaxItems=33
	// +listType=atomic
	Signed []SignedImages `json:"signed,omitempty"`
}

// AppliedPodSecurity is the strictest Pod Security level of a tenant and its policies, or of those policies that only warn or record.
type AppliedPodSecurity struct {
	PodSecurityRules `json:",inline"`

	// Policies are the names of the policies that require this level; "tenant.yaml" for spec.podSecurity of the Tenant.
	// +kubebuilder:validation:MaxItems=17
	// +listType=set
	Policies []string `json:"policies"`
}

// AppliedLimits are the limits of a policy.
type AppliedLimits struct {
	LimitRules `json:",inline"`

	// Policy is the name of the policy; "project.yaml" for spec.limits of the Project.
	Policy string `json:"policy"`
}

// AllowedNetwork is what NetworkPolicies in the namespace of a project may open: what kubeop's own opens with spec.network.policies Platform. Pods of
// the project are always allowed.
type AllowedNetwork struct {
	// Policies is spec.network.policies of the Project.
	Policies NetworkPolicies `json:"policies,omitempty"`
	// From are labels of namespaces, of which one entry has to match, whose pods may connect to those of the project.
	// +listType=atomic
	From []map[string]string `json:"from,omitempty"`
	// To is what the project's pods may connect to.
	// +listType=atomic
	To []AllowedPeers `json:"to,omitempty"`
}

// AllowedPeers are peers to which pods may connect at some ports.
type AllowedPeers struct {
	// Namespaces are labels of namespaces, of which one entry has to match.
	// +listType=atomic
	Namespaces []map[string]string `json:"namespaces,omitempty"`
	// Ranges are addresses outside of the cluster.
	// +listType=atomic
	Ranges []AllowedRange `json:"ranges,omitempty"`
	// Ports of these peers. Default: all.
	// +listType=atomic
	Ports []AllowedPorts `json:"ports,omitempty"`
}

// AllowedRange is a range of addresses.
type AllowedRange struct {
	// CIDR is the range.
	CIDR string `json:"cidr"`
	// Except are ranges in it that are not allowed.
	// +listType=atomic
	Except []string `json:"except,omitempty"`
}

// AllowedPorts is a range of ports of a protocol, the last one included.
type AllowedPorts struct {
	// Protocol is TCP, UDP or SCTP.
	Protocol string `json:"protocol"`
	// Port is the first port.
	Port int32 `json:"port"`
	// EndPort is the last port.
	EndPort int32 `json:"endPort"`
}

// SignedImages are images whose signatures satisfy images.verify of a policy.
type SignedImages struct {
	// Signatures is that of the policy.
	// +kubebuilder:validation:MaxLength=64
	Signatures string `json:"signatures"`
	// Images are "<full name>@sha256:<digest>".
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=400
	// +listType=set
	Images []string `json:"images,omitempty"`
}

// MaxSignedImages is how many images SignedImages can have.
const MaxSignedImages = 512

// ClaimedHostnames are the host names that a project has by HostnameClaims. Ingresses, routes and Gateways in its namespace can serve no others.
type ClaimedHostnames struct {
	// Names are the host names, in the form of spec.hostname of the HostnameClaims.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Names []string `json:"names,omitempty"`
}

// Guardrails are the policies that hold in the namespace of a project. kubeop writes one from the Policies of the tenant, and the API
// server's admission policies read it. People can read in it what they may do; nobody but kubeop can change it.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:categories=kubeop
// +kubebuilder:printcolumn:name="Deny",type=string,JSONPath=`.spec.deny[*].policy`
// +kubebuilder:printcolumn:name="Warn",type=string,JSONPath=`.spec.warn[*].policy`
// +kubebuilder:printcolumn:name="Audit",type=string,JSONPath=`.spec.audit[*].policy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'kubeop'",message="the Guardrails of a project are named kubeop"
type Guardrails struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec GuardrailsSpec `json:"spec,omitempty"`
}

// GuardrailsList is a list of Guardrails.
// +kubebuilder:object:root=true
type GuardrailsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Guardrails `json:"items"`
}
