package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/kustomize"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// HelmSource delivers a chart as a Helm release. The chart comes from a Helm repository, an OCI registry, the app's folder or another
// Git repository. The release and its records are always in the project's namespace.
// +kubebuilder:validation:XValidation:rule="(has(self.repository) ? 1 : 0) + (has(self.path) ? 1 : 0) + (has(self.git) ? 1 : 0) == 1",message="exactly one of repository, git and path must be set"
// +kubebuilder:validation:XValidation:rule="has(self.chart) == has(self.repository)",message="chart is required with repository, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || has(self.repository)",message="version needs repository; a chart in a folder has the version its Chart.yaml says"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || has(self.repository)",message="digest needs repository; pin a chart in Git by git.ref.commit"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || has(self.repository)",message="secretRef needs repository; git has its own"
// +kubebuilder:validation:XValidation:rule="!has(self.insecure) || !self.insecure || (has(self.repository) && self.repository.startsWith('oci://'))",message="insecure is for an oci:// repository only"
type HelmSource struct {
	// Repository is the https:// URL of a Helm repository or the oci:// URL of the registry path that holds the chart.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|oci)://[^\s]+$`
	Repository string `json:"repository,omitempty"`
	// Chart is the chart's name in the repository.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$`
	Chart string `json:"chart,omitempty"`
	// Version is a version or a semver range. The newest matching version is used. Default "*": the newest stable version.
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// Digest pins the chart's archive, as "sha256:<hex>". A different archive is rejected. Default: not pinned.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`
	// SecretRef names a Secret in the app's namespace with the repository's credentials: username and password, bearerToken, or
	// .dockerconfigjson. ca.crt adds a certificate authority. tls.crt and tls.key are a client certificate.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// Insecure allows an oci:// registry without TLS. A Helm repository without TLS has an http:// URL instead. Default false.
	Insecure bool `json:"insecure,omitempty"`
	// Path of a chart folder in the app's folder, such as "chart".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the app's folder"
	Path string `json:"path,omitempty"`
	// Git is a folder of another Git repository that holds the chart.
	Git *ChartGitSource `json:"git,omitempty"`
	// ReleaseName is the name of the release. When it changes, the old release is uninstalled and the new one is installed. With
	// install.takeOwnership the new release adopts the objects, and they are not recreated. Default: the app's name.
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	ReleaseName string `json:"releaseName,omitempty"`
	// Values override the values of all other sources.
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// ChartValuesFiles are values files in the chart, such as values-production.yaml. They are merged in order over its values.yaml.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(f, !f.startsWith('/') && !f.split('/').exists(p, p == '..'))",message="chartValuesFiles must stay inside the chart"
	// +listType=atomic
	ChartValuesFiles []string `json:"chartValuesFiles,omitempty"`
	// ValuesFiles are values files in the app's folder. They are merged in order over chartValuesFiles.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(f, !f.startsWith('/') && !f.split('/').exists(p, p == '..'))",message="valuesFiles must stay inside the app's folder"
	// +listType=atomic
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// ValuesFrom are ConfigMaps and Secrets in the app's namespace. They are merged in order over valuesFiles.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`

	// PostRenderers change the rendered objects, including hooks, in this order. Then the objects are checked and applied.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	PostRenderers []PostRenderer `json:"postRenderers,omitempty"`
	// CommonMetadata is set on every object of the chart, including hooks. It overrides the chart's metadata.
	CommonMetadata *CommonMetadata `json:"commonMetadata,omitempty"`

	HelmActions `json:",inline"`
}

// ValuesReference takes values from a ConfigMap or Secret.
type ValuesReference struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name of the object, in the app's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// ValuesKey is the key that holds the values as YAML. Default values.yaml.
	// +kubebuilder:validation:MaxLength=253
	ValuesKey string `json:"valuesKey,omitempty"`
	// TargetPath is a path in the values, such as "image.tag". The key's content becomes the value at this path, instead of being merged
	// as YAML.
	// +kubebuilder:validation:MaxLength=253
	TargetPath string `json:"targetPath,omitempty"`
	// Optional ignores a missing object or key. Default false.
	Optional bool `json:"optional,omitempty"`
}

// ChartGitSource is a folder of a Git repository that holds a chart.
type ChartGitSource struct {
	// URL to fetch from.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?|ssh)://[^\s]+$`
	URL string `json:"url"`
	// Ref to follow. Default: the default branch of the remote repository.
	Ref *sourcev1.GitRepositoryRef `json:"ref,omitempty"`
	// Path of the chart's folder. Default: the root.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.split('/').exists(p, p == '..')",message="path must stay inside the repository"
	Path string `json:"path,omitempty"`
	// SecretRef names a Secret in the app's namespace with the credentials, in the format of a Git app's secretRef.
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
}

// PostRenderer changes rendered objects.
type PostRenderer struct {
	// Kustomize changes the objects as a kustomization would.
	Kustomize KustomizePostRenderer `json:"kustomize"`
}

// KustomizePostRenderer is the part of a kustomization that changes objects.
type KustomizePostRenderer struct {
	// Patches are strategic merge or JSON 6902 patches, each with the objects it is for.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Patches []kustomize.Patch `json:"patches,omitempty"`
	// Images replace the name, tag or digest of images.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Images []kustomize.Image `json:"images,omitempty"`
}

// CommonMetadata is metadata for many objects.
type CommonMetadata struct {
	// Labels to set. Labels of kubeop's own group are rejected.
	// +kubebuilder:validation:MaxProperties=32
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations to set. Annotations of kubeop's own group are rejected.
	// +kubebuilder:validation:MaxProperties=32
	Annotations map[string]string `json:"annotations,omitempty"`
}
