package v1alpha1

import (
	"cmp"

	"github.com/fluxcd/pkg/apis/kustomize"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// ReleaseName returns the name of the release of a Helm app.
func (o *App) ReleaseName() string { return cmp.Or(o.Spec.Helm.ReleaseName, o.Name) }

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

// HelmActions define how a release is installed, upgraded, tested, remediated and uninstalled.
type HelmActions struct {
	// Wait delays the post-install and post-upgrade hooks until every object is ready, as `helm --wait` does. Only charts whose hooks
	// need the installed objects need it. The app's health is checked in any case. Default false.
	Wait bool `json:"wait,omitempty"`
	// Install configures the first revision.
	Install HelmInstall `json:"install,omitzero"`
	// Upgrade configures later revisions.
	Upgrade HelmUpgrade `json:"upgrade,omitzero"`
	// Test runs the chart's tests once a revision is healthy.
	Test HelmTest `json:"test,omitzero"`
	// Remediation configures what follows an upgrade that failed or did not become healthy within its timeout.
	Remediation HelmRemediation `json:"remediation,omitzero"`
	// Uninstall configures the removal of the release.
	Uninstall HelmUninstall `json:"uninstall,omitzero"`
}

// HelmAction holds the settings that installs and upgrades share.
type HelmAction struct {
	// Timeout of each hook, and the time in which the release must become healthy. From 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// DisableHooks runs no hooks. Default false.
	DisableHooks bool `json:"disableHooks,omitempty"`
	// DisableWait treats the release as successful once it is applied, without checking the health of its objects. Default false.
	DisableWait bool `json:"disableWait,omitempty"`
	// DisableWaitForJobs excludes Jobs from the release's health. Default false.
	DisableWaitForJobs bool `json:"disableWaitForJobs,omitempty"`
	// DisableOpenAPIValidation makes the API server drop unknown fields silently, instead of with a warning in the log. Default false.
	DisableOpenAPIValidation bool `json:"disableOpenAPIValidation,omitempty"`
	// DisableSchemaValidation skips the check of the values against the chart's values.schema.json. Default false.
	DisableSchemaValidation bool `json:"disableSchemaValidation,omitempty"`
	// CRDs defines what happens to the CustomResourceDefinitions in the chart's crds folder. They are cluster-scoped, so the project's
	// deployer needs the permission to write them. Skip needs no permission. Default CreateReplace.
	CRDs CRDsPolicy `json:"crds,omitempty"`
	// Force deletes and recreates objects that the API server refuses to change, such as a Job. It never does so with a
	// CustomResourceDefinition, a PersistentVolumeClaim, or an owner of claims that hold data. Default false.
	Force bool `json:"force,omitempty"`
	// TakeOwnership adopts existing objects in the app's namespace that belong to no release, or to another release of this app. Default
	// false.
	TakeOwnership bool `json:"takeOwnership,omitempty"`
}

// HelmInstall configures the first revision.
type HelmInstall struct {
	HelmAction `json:",inline"`
	// Replace continues the history of an uninstalled release of the same name instead of removing it. Default false.
	Replace bool `json:"replace,omitempty"`
}

// HelmUpgrade configures later revisions.
type HelmUpgrade struct {
	HelmAction `json:",inline"`
	// CleanupOnFail deletes what a failed upgrade created. Default false.
	CleanupOnFail bool `json:"cleanupOnFail,omitempty"`
	// PreserveValues merges the values over those of the last revision instead of replacing them. Default false.
	PreserveValues bool `json:"preserveValues,omitempty"`
}

// CRDsPolicy defines what happens to a chart's CustomResourceDefinitions.
// +kubebuilder:validation:Enum=Skip;Create;CreateReplace
type CRDsPolicy string

const (
	// CRDsSkip does not apply them.
	CRDsSkip CRDsPolicy = "Skip"
	// CRDsCreate creates those that do not exist.
	CRDsCreate CRDsPolicy = "Create"
	// CRDsCreateReplace creates those that do not exist and replaces those that do. The default.
	CRDsCreateReplace CRDsPolicy = "CreateReplace"
)

// HelmTest configures the chart's tests.
type HelmTest struct {
	// Enable runs them. Default false.
	Enable bool `json:"enable,omitempty"`
	// Timeout of each test, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// IgnoreFailures reports failed tests, but still treats the release as successful. Default false.
	IgnoreFailures bool `json:"ignoreFailures,omitempty"`
	// Filters select tests by name. Default: all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Filters []TestFilter `json:"filters,omitempty"`
}

// TestFilter selects a test.
type TestFilter struct {
	// Name of the test.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Exclude skips the test instead of selecting it. Default false.
	Exclude bool `json:"exclude,omitempty"`
}

// HelmRemediation configures what follows a failed upgrade.
type HelmRemediation struct {
	// Retries is how often the same input is retried before the strategy is applied, from 0 to 10. Failures outside the app, such as of
	// a registry or an API server, do not count and are retried without a limit. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries *int32 `json:"retries,omitempty"`
	// Strategy is applied after the last retry. Then the input is held: it is not retried until it changes, or until the annotation
	// reconcile.fluxcd.io/forceAt or resetAt requests it. Default Rollback.
	Strategy RemediationStrategy `json:"strategy,omitempty"`
}

// RemediationStrategy defines what happens after the last retry of an upgrade.
// +kubebuilder:validation:Enum=Rollback;Uninstall;None
type RemediationStrategy string

const (
	// RemediationRollback returns to the newest revision that was healthy. The default.
	RemediationRollback RemediationStrategy = "Rollback"
	// RemediationUninstall uninstalls the release and keeps its history.
	RemediationUninstall RemediationStrategy = "Uninstall"
	// RemediationNone keeps the failed revision.
	RemediationNone RemediationStrategy = "None"
)

// HelmUninstall configures the removal of the release.
type HelmUninstall struct {
	// KeepHistory keeps the release's records, as `helm uninstall --keep-history` does. Default false.
	KeepHistory bool `json:"keepHistory,omitempty"`
	// DisableHooks runs no hooks. Default false.
	DisableHooks bool `json:"disableHooks,omitempty"`
	// DeletionPropagation defines how dependents of the objects are deleted: background, foreground or orphan. Default background.
	// +kubebuilder:validation:Enum=background;foreground;orphan
	DeletionPropagation string `json:"deletionPropagation,omitempty"`
	// Timeout of each hook, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
