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
