package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxHostnames is how many host names a project can have.
const MaxHostnames = 256

// HostnameClaimSpec says which project has a host name.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a claim cannot be changed: delete it, and create another one"
type HostnameClaimSpec struct {
	// Hostname is the host name in lower case, international names in their ASCII form (xn--…), without a dot at the end. "*.example.com" are
	// all names below example.com that are not claimed by themselves.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Hostname string `json:"hostname"`
	// Tenant is the name of the tenant, "platform" for the platform itself.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenant string `json:"tenant"`
	// Project is the name of the tenant's project whose objects may serve the host name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Project string `json:"project"`
}

// HostnameClaim gives a host name to one project. Its own name is the host name, so the API server gives each host name to the first that
// asks. kubeop makes the claims for what apps ask for, and deletes these when nothing of the project uses the name any more. Administrators can
// create others, to keep a name for a project: kubeop does not delete them.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=host,categories=kubeop
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.spec.hostname`
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.spec.tenant`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.project`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == (self.spec.hostname.startsWith('*.') ? 'wildcard--of' + self.spec.hostname.substring(1) : self.spec.hostname)",message="metadata.name must be spec.hostname, and wildcard--of.example.com for *.example.com"
// +kubebuilder:validation:XValidation:rule="!self.spec.hostname.startsWith('wildcard--of.')",message="wildcard--of.example.com is the name of the claim of *.example.com, and no host name"
type HostnameClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HostnameClaimSpec `json:"spec"`
}

// HostnameClaimList is a list of HostnameClaims.
// +kubebuilder:object:root=true
type HostnameClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostnameClaim `json:"items"`
}
