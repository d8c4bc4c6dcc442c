package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmActions say how a release is installed, upgraded, tested, mended and uninstalled.
type HelmActions struct {
	// Wait holds the hooks that follow an install or upgrade back until every object is ready, as `helm --wait` does. Only
	// charts whose post-install or post-upgrade hooks need what they installed want it: without it the app is judged by
	// its health all the same. Default false.
	// +optional
	Wait bool `json:"wait,omitempty"`
	// Install is how the first revision is made.
	// +optional
	Install HelmInstall `json:"install,omitzero"`
	// Upgrade is how later revisions are made.
	// +optional
	Upgrade HelmUpgrade `json:"upgrade,omitzero"`
	// Test runs the chart's tests once a revision is healthy.
	// +optional
	Test HelmTest `json:"test,omitzero"`
	// Remediation is what follows an upgrade that failed, or did not become healthy within its timeout.
	// +optional
	Remediation HelmRemediation `json:"remediation,omitzero"`
	// Uninstall is how the release is removed.
	// +optional
	Uninstall HelmUninstall `json:"uninstall,omitzero"`
}

// HelmAction is what installs and upgrades have in common.
type HelmAction struct {
	// Timeout of each hook, and of becoming healthy, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// DisableHooks runs no hooks. Default false.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`
	// DisableWait takes the release for good once it is applied, whatever becomes of its objects. Default false.
	// +optional
	DisableWait bool `json:"disableWait,omitempty"`
	// DisableWaitForJobs leaves Jobs out of the release's health. Default false.
	// +optional
	DisableWaitForJobs bool `json:"disableWaitForJobs,omitempty"`
	// DisableOpenAPIValidation has the API server drop fields it does not know without a word, instead of with a warning in
	// the log. Default false.
	// +optional
	DisableOpenAPIValidation bool `json:"disableOpenAPIValidation,omitempty"`
	// DisableSchemaValidation does not check the values against the chart's values.schema.json. Default false.
	// +optional
	DisableSchemaValidation bool `json:"disableSchemaValidation,omitempty"`
	// CRDs says what becomes of the CustomResourceDefinitions in the chart's crds folder. They are the whole cluster's, so
	// the project's deployer must have been given the right to write them; Skip needs none. Default CreateReplace.
	// +optional
	CRDs CRDsPolicy `json:"crds,omitempty"`
	// Force deletes and makes anew the objects that the API server refuses to change, such as a Job; never a
	// CustomResourceDefinition, a PersistentVolumeClaim, or what owns claims that hold data. Default false.
	// +optional
	Force bool `json:"force,omitempty"`
	// TakeOwnership adopts objects that exist and belong to no release, or to another one of this app, if they are in its
	// namespace. Default false.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`
}

// HelmInstall is how the first revision is made.
type HelmInstall struct {
	HelmAction `json:",inline"`
	// Replace goes on with the history of an uninstalled release of the same name instead of removing it. Default false.
	// +optional
	Replace bool `json:"replace,omitempty"`
}

// HelmUpgrade is how later revisions are made.
type HelmUpgrade struct {
	HelmAction `json:",inline"`
	// CleanupOnFail deletes what a failed upgrade created. Default false.
	// +optional
	CleanupOnFail bool `json:"cleanupOnFail,omitempty"`
	// PreserveValues merges the values over those of the last revision instead of replacing them. Default false.
	// +optional
	PreserveValues bool `json:"preserveValues,omitempty"`
}

// CRDsPolicy says what becomes of a chart's CustomResourceDefinitions.
// +kubebuilder:validation:Enum=Skip;Create;CreateReplace
type CRDsPolicy string

const (
	// CRDsSkip leaves them out.
	CRDsSkip CRDsPolicy = "Skip"
	// CRDsCreate creates those that do not exist.
	CRDsCreate CRDsPolicy = "Create"
	// CRDsCreateReplace creates them and brings those that exist to what the chart says. The default.
	CRDsCreateReplace CRDsPolicy = "CreateReplace"
)

// HelmTest runs a chart's tests.
type HelmTest struct {
	// Enable runs them. Default false.
	// +optional
	Enable bool `json:"enable,omitempty"`
	// Timeout of each test, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// IgnoreFailures tells of failed tests and counts the release as good all the same. Default false.
	// +optional
	IgnoreFailures bool `json:"ignoreFailures,omitempty"`
	// Filters choose tests by name. Default: all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Filters []TestFilter `json:"filters,omitempty"`
}

// TestFilter chooses a test.
type TestFilter struct {
	// Name of the test.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Exclude leaves the test out instead. Default false.
	// +optional
	Exclude bool `json:"exclude,omitempty"`
}

// HelmRemediation is what follows a bad upgrade.
type HelmRemediation struct {
	// Retries is how often the same input is tried again before the strategy is applied, from 0 to 10. Failures of the
	// world, such as a registry or an API server that is away, do not count; they are retried for ever. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Retries *int32 `json:"retries,omitempty"`
	// Strategy is applied when the retries are used up. The input is then held: it is not tried again until it changes, or
	// the annotation reconcile.fluxcd.io/forceAt or resetAt asks for it. Default Rollback.
	// +optional
	Strategy RemediationStrategy `json:"strategy,omitempty"`
}

// RemediationStrategy is what is done about an upgrade that keeps failing.
// +kubebuilder:validation:Enum=Rollback;Uninstall;None
type RemediationStrategy string

const (
	// RemediationRollback returns to the newest revision that was good. The default.
	RemediationRollback RemediationStrategy = "Rollback"
	// RemediationUninstall uninstalls the release and keeps its history.
	RemediationUninstall RemediationStrategy = "Uninstall"
	// RemediationNone leaves the failed revision as it is.
	RemediationNone RemediationStrategy = "None"
)

// HelmUninstall is how the release is removed.
type HelmUninstall struct {
	// KeepHistory leaves the release's records, as `helm uninstall --keep-history` does. Default false.
	// +optional
	KeepHistory bool `json:"keepHistory,omitempty"`
	// DisableHooks runs no hooks. Default false.
	// +optional
	DisableHooks bool `json:"disableHooks,omitempty"`
	// DeletionPropagation is how what belongs to the objects is deleted: background, foreground or orphan. Default background.
	// +kubebuilder:validation:Enum=background;foreground;orphan
	// +optional
	DeletionPropagation string `json:"deletionPropagation,omitempty"`
	// Timeout of each hook, from 1s to 1h. Default: the app's timeout.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="timeout must be at least 1s and at most 1h"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
