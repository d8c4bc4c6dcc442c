package v1alpha1

// Notification defines who is told of failures and deliveries of a tenant's apps. The names of the fields, the types and the keys of the
// Secret are those of Flux's Provider and Alert.
type Notification struct {
	// Name of the receiver, for messages about it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Type of the receiver: slack, msteams, generic (JSON), generic-hmac (JSON with a signature) or alertmanager.
	// +kubebuilder:validation:Enum=slack;msteams;generic;generic-hmac;alertmanager
	Type string `json:"type"`
	// SecretRef names a Secret in the operator's namespace with the address, the URL of the webhook. Its other keys are optional: token
	// signs what generic-hmac sends, and is a bearer token for other types; username and password; ca.crt.
	SecretRef LocalSecretReference `json:"secretRef"`
	// EventSeverity is the lowest severity: info for failures and deliveries, error for failures alone. Default info.
	// +kubebuilder:validation:Enum=info;error
	// +kubebuilder:default=info
	EventSeverity string `json:"eventSeverity,omitempty"`
	// Apps are patterns of the apps, as "<project>/<app>", in which * stands for any part of a name. Default: all apps, and the tenant's
	// repository.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*][-a-z0-9*]*/[a-z0-9*][-a-z0-9*]*$`
	// +listType=set
	Apps []string `json:"apps,omitempty"`
}

// CommitStatus defines how the Git host shows beside each commit whether it is applied and healthy. The names of the fields are those of
// Flux's Provider.
type CommitStatus struct {
	// Type of the Git host's API; gitea is also Forgejo's. Default: by the name of the host in url.
	// +kubebuilder:validation:Enum=github;gitlab;gitea;bitbucket;bitbucketserver
	Type string `json:"type,omitempty"`
	// Address of the Git host, if its API is at another host than url, or below a path. Default: the host of url.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	Address string `json:"address,omitempty"`
	// SecretRef names a Secret in the operator's namespace with a token for the API: bearerToken, or username and password. Default: the
	// secretRef of the repository.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Context is the name of the status. Clusters that deliver the same repository need different ones. Default kubeop/<tenant>.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9/._ -]*[A-Za-z0-9])?$`
	Context string `json:"context,omitempty"`
	// TargetURL is the link of the status; "{commit}" in it stands for the hash of the commit. Default: none.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	TargetURL string `json:"targetURL,omitempty"`
}

// ReportedStatus is a status that the Git host shows for a commit.
type ReportedStatus struct {
	// Commit is the hash.
	Commit string `json:"commit"`
	// State is pending, success, failure or canceled.
	State string `json:"state"`
	// Description is the text beside it.
	Description string `json:"description,omitempty"`
}
