package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/kustomize"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// GitSource delivers the manifests of a folder. A folder with a kustomization.yaml is built with kustomize. Otherwise every .yaml,
// .yml and .json file in the folder and its subfolders is delivered.
// +kubebuilder:validation:XValidation:rule="(has(self.url) ? 1 : 0) + (has(self.sourceRef) ? 1 : 0) + (has(self.oci) ? 1 : 0) == 1",message="exactly one of url, sourceRef and oci must be set"
// +kubebuilder:validation:XValidation:rule="has(self.url) || !(has(self.ref) || has(self.secretRef) || has(self.verify))",message="ref, secretRef and verify belong to url; sourceRef and oci have their own"
type GitSource struct {
	// URL of a Git repository to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url,omitempty"`
	// Ref to follow. Default: the default branch of the remote repository.
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the folder. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	Path string `json:"path,omitempty"`
	// SecretRef names a Secret in the app's namespace with the credentials: username and password, bearerToken, identity and
	// known_hosts (SSH), or githubAppID, githubAppInstallationID and githubAppPrivateKey. ca.crt adds a certificate authority.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Verify accepts only commits or tags that are signed by one of the given keys.
	Verify *GitVerification `json:"verify,omitempty"`
	// Ignore excludes files, in the syntax of .gitignore. Default: only files whose names start with a dot are excluded.
	// +kubebuilder:validation:MaxLength=4096
	Ignore string `json:"ignore,omitempty"`
	// SourceRef takes the manifests from a Flux source in the app's namespace. It works only where Flux's source kinds are installed.
	SourceRef *FluxSourceReference `json:"sourceRef,omitempty"`
	// OCI takes the manifests from an artifact in a registry, such as `flux push artifact` writes.
	OCI *OCISource `json:"oci,omitempty"`

	Build `json:",inline"`
}

// GitVerification defines what must be signed, and by which keys.
type GitVerification struct {
	// Mode defines what must be signed: the commit, the annotated tag that ref.tag names, or both. Default HEAD.
	// +kubebuilder:validation:Enum=HEAD;Tag;TagAndHEAD
	// +kubebuilder:default=HEAD
	Mode sourcev1.GitVerificationMode `json:"mode,omitempty"`
	// SecretRef names a Secret with the public keys, in the app's namespace or, for a Repository, in the operator's. Each key *.asc is
	// an armored OpenPGP key. Each key *.pub lists SSH public keys, as authorized_keys does.
	SecretRef LocalSecretReference `json:"secretRef"`
}

// FluxSourceReference names an object of the group source.toolkit.fluxcd.io.
type FluxSourceReference struct {
	// Kind of the source.
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;Bucket;ExternalArtifact
	Kind string `json:"kind"`
	// Name of the source.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// OCISource is an artifact in a registry. digest takes precedence over semver, and semver over tag. Without all three, the tag is
// latest.
type OCISource struct {
	// URL of the artifact, without a tag, such as "oci://registry.example.com/manifests/web".
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^oci://[^\s]+$`
	URL string `json:"url"`
	// Tag of the artifact.
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`
	// SemVer chooses the highest tag in a version range.
	// +kubebuilder:validation:MaxLength=256
	SemVer string `json:"semver,omitempty"`
	// Digest of the artifact's manifest, as "sha256:" and 64 hexadecimal digits.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
	// SecretRef names a Secret in the app's namespace: of type kubernetes.io/dockerconfigjson, or with username and password. ca.crt
	// adds a certificate authority.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Insecure allows a registry without TLS. Default false.
	Insecure bool `json:"insecure,omitempty"`
}

// Build defines how the manifests of a folder are decrypted, built with kustomize and substituted.
type Build struct {
	// Patches change objects by strategic merge or JSON 6902.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Patches []kustomize.Patch `json:"patches,omitempty"`
	// Images replace names, tags and digests of images.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Images []kustomize.Image `json:"images,omitempty"`
	// Components are folders of kustomize components, relative to path.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	Components []string `json:"components,omitempty"`
	// Substitute replaces ${name} in the built manifests. ${name:=default} has a default. $${name} is written as ${name}.
	// +kubebuilder:validation:MaxProperties=256
	Substitute map[string]string `json:"substitute,omitempty"`
	// SubstituteFrom takes variables from ConfigMaps and Secrets in the app's namespace. Later entries override earlier ones, and
	// substitute overrides them all.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	SubstituteFrom []SubstituteReference `json:"substituteFrom,omitempty"`
	// SubstituteStrict rejects variables that have neither a value nor a default. If it is false, they become empty. Default true.
	SubstituteStrict *bool `json:"substituteStrict,omitempty"`
	// Decryption decrypts the files.
	Decryption *Decryption `json:"decryption,omitempty"`
}

// SubstituteReference names a ConfigMap or Secret with variables.
type SubstituteReference struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Optional ignores a missing object. Default false.
	Optional bool `json:"optional,omitempty"`
}

// Decryption defines how files that SOPS encrypted are decrypted.
type Decryption struct {
	// Provider of the encryption.
	// +kubebuilder:validation:Enum=sops
	Provider string `json:"provider"`
	// SecretRef names a Secret in the app's namespace with private keys or credentials. Each key *.agekey holds age identities, each key
	// *.asc an OpenPGP key. Credentials for key services are sops.aws-kms, sops.gcp-kms, sops.azure-kv and sops.vault-token. Default: the key of
	// the tenant, if spec.sops of the Tenant is Generated.
	// +optional
	SecretRef LocalSecretReference `json:"secretRef,omitzero"`
}

// RawSource delivers manifests without a build.
// +kubebuilder:validation:XValidation:rule="has(self.manifests) != has(self.path)",message="exactly one of manifests and path must be set"
type RawSource struct {
	// Manifests are the objects themselves.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:pruning:PreserveUnknownFields
	// +listType=atomic
	Manifests []runtime.RawExtension `json:"manifests,omitempty"`
	// Path of a folder in the app's folder, such as "manifests".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	Path string `json:"path,omitempty"`
	// Decryption decrypts the manifests.
	Decryption *Decryption `json:"decryption,omitempty"`
}
