package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PullSecretPrefix begins the names of the Secrets that kubeop writes into the namespaces of projects; the name of the Registry follows.
const PullSecretPrefix = "kubeop-registry-"

// RegistrySpec is a registry of images, charts and artifacts, its credentials, and who may use them.
// +kubebuilder:validation:XValidation:rule="!has(self.mirror) || self.mirror != self.host",message="mirror must be another registry, or a path at this one"
type RegistrySpec struct {
	// Host is the host of the registry in lower case, with a port if it is in references: ghcr.io, registry.example.com:5000. Docker Hub is
	// docker.io.
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['index.docker.io', 'registry-1.docker.io'])",message="host of Docker Hub is docker.io"
	// +kubebuilder:validation:XValidation:rule="self.contains('.') || self.contains(':') || self == 'localhost'",message="host must have a dot or a port: without them, a reference of an image has no host"
	Host string `json:"host"`
	// SecretRef names the Secret with the credentials, in the namespace of the operator: of type kubernetes.io/dockerconfigjson with an entry
	// for the host, or with the keys username and password. No other entry of it is given to anyone.
	SecretRef LocalSecretReference `json:"secretRef"`
	// Insecure has kubeop fetch from the host without TLS, with the credentials readable on the way. Nodes pull images as they are set up.
	// Default false.
	Insecure bool `json:"insecure,omitempty"`
	// Mirror is a registry that kubeop asks first for what it fetches from the host: its host, and the path below which it has the repositories
	// of this one, such as mirror.example.com/dockerhub. What the mirror does not have, or cannot give, comes from the host. Its credentials and
	// insecure are those of the Registry of its host, if the tenant may use one. Default: none.
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:[1-9][0-9]{0,4})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`
	// +kubebuilder:validation:XValidation:rule="self.split('/')[0].contains('.') || self.split('/')[0].contains(':') || self.split('/')[0] == 'localhost'",message="mirror must begin with a host that has a dot or a port"
	Mirror string `json:"mirror,omitempty"`
	// Tenants are the names of the tenants that may use the credentials, in all of their projects. Default: none.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Tenants []string `json:"tenants,omitempty"`
	// Policies are the names of Policies: each tenant that is under one of them may use the credentials, too. Default: none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	Policies []string `json:"policies,omitempty"`
}

// RegistryStatus is written by kubeop.
type RegistryStatus struct {
	ReconcileStatus `json:",inline"`

	// Projects counts the projects that have the credentials, as a pull Secret in their namespace.
	Projects int `json:"projects"`
}

// Registry gives tenants the credentials of a registry: registries/<registry>.yaml of the platform repository. kubeop keeps a Secret with
// them in the namespaces of the projects that may use it, and names it where images are pulled. Without tenants and policies, nobody may.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,shortName=reg,categories=kubeop
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Projects",type=integer,JSONPath=`.status.projects`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="name must be at most 63 lowercase letters, digits and dashes"
type Registry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RegistrySpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1,"projects":0}
	// +structType=atomic
	Status RegistryStatus `json:"status,omitempty"`
}

// RegistryList is a list of Registries.
// +kubebuilder:object:root=true
type RegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Registry `json:"items"`
}

// PullSecret is a Secret in the namespace of a project, with the credentials of a Registry.
type PullSecret struct {
	// Registry is the name of the Registry; the Secret is named kubeop-registry-<registry>.
	Registry string `json:"registry"`
	// Host is the host of the registry, as in the Registry.
	Host string `json:"host"`
	// Insecure is that of the Registry.
	Insecure bool `json:"insecure,omitempty"`
	// Mirror is that of the Registry.
	Mirror string `json:"mirror,omitempty"`
}

// Name is the name of the Secret.
func (p PullSecret) Name() string { return PullSecretPrefix + p.Registry }

// ClusterSpec describes a cluster whose operator reads the repositories.
type ClusterSpec struct {
	// Default: the cluster has the projects of tenants that name no Clusters. Exactly one Cluster has it. Default false.
	Default bool `json:"default,omitempty"`
	// Description is for people.
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
	// Server is the URL of its API server, for people: kubeop does not call it. Default: none.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	Server string `json:"server,omitempty"`
}

// Cluster is a cluster that can have projects: clusters/<cluster>.yaml of the platform repository. Its name is that in the configuration of the
// operator there, which takes the projects that are placed on it.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:resource:scope=Cluster,categories=kubeop
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="name must be at most 63 lowercase letters, digits and dashes"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
}

// ClusterList is a list of Clusters.
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
