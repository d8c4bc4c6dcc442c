package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
