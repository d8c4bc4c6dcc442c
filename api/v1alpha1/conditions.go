package v1alpha1

import "github.com/fluxcd/pkg/apis/meta"

// Summary conditions of every kind.
const (
	// ReadyCondition is the summary: True when every step of the object succeeded for its present generation.
	ReadyCondition = meta.ReadyCondition
	// ReconcilingCondition is present, and True, while work is under way or will be tried again.
	ReconcilingCondition = meta.ReconcilingCondition
	// StalledCondition is present, and True, when only a change of the object or its source can help.
	StalledCondition = meta.StalledCondition
	// NearSizeLimitCondition is present, and True, while the object comes near the size that the API server stores.
	NearSizeLimitCondition = "NearSizeLimit"
)

// Steps of a Repository, in order.
const (
	// FetchedCondition: the commit the ref points to is in the local object store.
	FetchedCondition = "Fetched"
	// AcceptedCondition: the commit may follow the one that was accepted before it, by its history and its signature. While it is
	// False, what was accepted before stays in force.
	AcceptedCondition = "Accepted"
	// SyncedCondition: the valid parts of the commit are the cluster's Tenants, Projects and Apps.
	SyncedCondition = "Synced"
	// TreeValidCondition: every file of the commit is valid.
	TreeValidCondition = "TreeValid"
	// HookClosedCondition is present, and True, while the Secret with the key of the push hook does not exist: pushes are found by
	// polling only.
	HookClosedCondition = "HookClosed"
)

// Steps of a Tenant and a Project, in order.
const (
	// NamespaceReadyCondition: the namespace exists, is ours, and is labelled.
	NamespaceReadyCondition = "NamespaceReady"
	// AccessReadyCondition: roles and service accounts are bound.
	AccessReadyCondition = "AccessReady"
	// GuardrailsReadyCondition: quota, limits and network isolation of a Project are in place, or quota and fair shares of a Tenant.
	GuardrailsReadyCondition = "GuardrailsReady"
	// RepositoryBoundCondition: the tenant's Repository is declared.
	RepositoryBoundCondition = "RepositoryBound"
)

// Conditions of an App and a Project beside their steps.
const (
	// CurrentCondition is present, and False, while a newer commit has a version of the object that is refused; the message names
	// commit, file and line. What runs is the last version that was valid, and Ready is about that.
	CurrentCondition = "Current"
)

// Steps of the removal of a Tenant and a Project, in order.
const (
	// RepositoryUnboundCondition: the tenant's Repository is gone, so that nothing is declared again.
	RepositoryUnboundCondition = "RepositoryUnbound"
	// ProjectsRemovedCondition: the tenant's projects are gone.
	ProjectsRemovedCondition = "ProjectsRemoved"
	// AppsRemovedCondition: the project's apps are gone.
	AppsRemovedCondition = "AppsRemoved"
	// NamespaceRemovedCondition: the namespace is gone with all that was in it.
	NamespaceRemovedCondition = "NamespaceRemoved"
)

// Steps of an App, in order.
const (
	// DependenciesReadyCondition: the app's project and what its dependsOn names, or the project's tenant, is there and
	// ready.
	DependenciesReadyCondition = "DependenciesReady"
	// SourceReadyCondition: the Git commit, the chart or the app's folder is at hand. False beside a true Ready, what was delivered runs on.
	SourceReadyCondition = "SourceReady"
	// RenderedCondition: the source became objects, or a chart with its values.
	RenderedCondition = "Rendered"
	// AllowedCondition: every object is one the app may have.
	AllowedCondition = "Allowed"
	// AppliedCondition: every object is in the cluster and what left the source is gone.
	AppliedCondition = "Applied"
	// ReleasedCondition: the Helm release is deployed with this chart and these values.
	ReleasedCondition = "Released"
	// HooksSucceededCondition is present where hooks are set: those before and after the present revision ran, and none that
	// failed holds it. status.hooks tells of each.
	HooksSucceededCondition = "HooksSucceeded"
	// HealthyCondition: every object does what it is there for, by kstatus.
	HealthyCondition = "Healthy"
	// TestSuccessCondition: the chart's tests succeeded on the newest revision.
	TestSuccessCondition = "TestSuccess"
	// RemediatedCondition is present after an upgrade that kept failing: True when the release was rolled back or uninstalled
	// for it. It goes when another input is released. An app that has it is not Ready.
	RemediatedCondition = "Remediated"
	// DriftedCondition is True while objects of the app are not as its source or release says; its message names the fields.
	DriftedCondition = "Drifted"
	// ImageKeptCondition is present, and True, while the registry could not be asked and the image that its policy chose last
	// is delivered on.
	ImageKeptCondition = "ImageKept"
	// StartedEmptyCondition is present, and True, while a volume of the app is a new, empty claim and one of the same name is left
	// of an app that is gone; the message says which, and the lines to write to go on with it.
	StartedEmptyCondition = "StartedEmpty"
	// RemovedCondition: everything the deleted app delivered is gone.
	RemovedCondition = "Removed"
)

// Reasons of all kinds.
const (
	// SucceededReason: the step or the object is done.
	SucceededReason = meta.SucceededReason
	// ProgressingReason: work is under way; nothing is wrong.
	ProgressingReason = meta.ProgressingReason
	// WaitingForTurnReason: as many fetches wait, or builds are under way, as may at once; nothing is wrong. It goes on when its turn
	// comes.
	WaitingForTurnReason = "WaitingForTurn"
	// ProgressingWithRetryReason: the last try failed; another follows.
	ProgressingWithRetryReason = meta.ProgressingWithRetryReason
	// FailedReason: the step failed in a way that has no reason of its own.
	FailedReason = meta.FailedReason
	// DependencyNotReadyReason: what the object lives in or depends on is not ready.
	DependencyNotReadyReason = meta.DependencyNotReadyReason
	// DeletingReason: what the object made is being removed; the message names what is left.
	DeletingReason = "Deleting"
	// AccessDeniedReason: the API server refused the operator or the project's deployer.
	AccessDeniedReason = "AccessDenied"
	// AuthenticationFailedReason: the source refused the credentials.
	AuthenticationFailedReason = "AuthenticationFailed"
	// SourceNotFoundReason: the repository, ref, path, chart or version does not exist.
	SourceNotFoundReason = "SourceNotFound"
	// InvalidSourceReason: the source's address or credentials are of no usable form.
	InvalidSourceReason = "InvalidSource"
	// LeftRunningReason, of an event: the object went, and what it made was left running, because it was suspended, or because the
	// deletion was not meant for it: its definition is being deleted, or it was deleted while kubeop was not installed.
	LeftRunningReason = "LeftRunning"
	// FetchFailedReason: the source could not be read; it is tried again.
	FetchFailedReason = "FetchFailed"
)

// Reasons of a Repository.
const (
	// InvalidTreeReason: at least one file is wrong; the message says which, where and why.
	InvalidTreeReason = "InvalidTree"
	// HistoryRewrittenReason: the commit does not descend from the one that was accepted last, so it waits to be confirmed.
	HistoryRewrittenReason = "HistoryRewritten"
	// DeletionHeldReason, of an event: the object stays though it is being deleted, because kubeop is being uninstalled.
	DeletionHeldReason = "DeletionHeld"
	// DeletionsHeldReason: the commit deletes so much that it waits to be confirmed.
	DeletionsHeldReason = "DeletionsHeld"
	// SecretMissingReason: a Secret that the spec names does not exist; the message says how to make it.
	SecretMissingReason = "SecretMissing"
	// SyncFailedReason: the API server did not take some object; it is tried again.
	SyncFailedReason = "SyncFailed"
)

// Reasons of a Tenant and a Project.
const (
	// NamespaceTakenReason: the namespace exists and is not ours; kubeop never adopts one.
	NamespaceTakenReason = "NamespaceTaken"
	// NamespaceRetainedReason, of an event: the namespace was left because claims in it hold data; the message names them.
	NamespaceRetainedReason = "NamespaceRetained"
	// NamespaceAdoptedReason, of an event: a namespace that an earlier object of the same tenant made is this one's again.
	NamespaceAdoptedReason = "NamespaceAdopted"
	// RemovalForcedReason, of an event: what held a removal was ended. Pods did not end in time and were deleted without waiting for
	// them, or administrators had finalizers taken off; the message says which.
	RemovalForcedReason = "RemovalForced"
	// VolumesRetainedReason, of an event: somebody allowed the deletion of a namespace of a Tenant or Project, and the volumes of
	// its claims will outlive it.
	VolumesRetainedReason = "VolumesRetained"
	// QuotaExceededReason: a project asks for more than the tenant's projects may have.
	QuotaExceededReason = "QuotaExceeded"
)

// Reasons of an App.
const (
	// InvalidExpressionReason: a CEL expression of the spec is wrong, or dependsOn names what no app may depend on.
	InvalidExpressionReason = "InvalidExpression"
	// PreHookFailedReason: a hook before the revision failed, and nothing of the revision was applied, unless its onFailure
	// is Continue.
	PreHookFailedReason = "PreHookFailed"
	// PostHookFailedReason: a hook after the revision failed. What was applied stays.
	PostHookFailedReason = "PostHookFailed"
	// RenderFailedReason: the source does not make valid objects.
	RenderFailedReason = "RenderFailed"
	// DecryptionFailedReason: a file is encrypted and cannot be decrypted with the keys at hand, or was changed since.
	DecryptionFailedReason = "DecryptionFailed"
	// ValuesFailedReason: a values file, or a ConfigMap or Secret with values or variables, is missing or is not YAML.
	ValuesFailedReason = "ValuesFailed"
	// NotAllowedReason: an object is cluster-scoped, foreign, or of kubeop's own API group.
	NotAllowedReason = "NotAllowed"
	// ApplyFailedReason: the API server did not take an object. Where that is because of what the object says, only a
	// change helps; anything else is tried again.
	ApplyFailedReason = "ApplyFailed"
	// PruneFailedReason: an object that left the source or the chart could not be deleted; it is tried again.
	PruneFailedReason = "PruneFailed"
	// ClaimsRetainedReason, of an event: StatefulSets are delivered with a persistentVolumeClaimRetentionPolicy of Retain, though
	// their manifests have Kubernetes delete claims by itself.
	ClaimsRetainedReason = "ClaimsRetained"
	// ClaimLeftBehindReason: a claim is left of an app that is gone, and has the name of a volume of this one.
	ClaimLeftBehindReason = "ClaimLeftBehind"
	// StillDeclaredReason: movedFrom names an app that is still declared, and so has its claims.
	StillDeclaredReason = "StillDeclared"
	// ClaimMissingReason: claimName names a claim that does not exist.
	ClaimMissingReason = "ClaimMissing"
	// ClaimsInTheWayReason: an object of the release is not deleted, and so the release not uninstalled or upgraded, because claims
	// that hold data belong to it and would go.
	ClaimsInTheWayReason = "ClaimsInTheWay"
	// KeptReason: objects that are protected from deletion were left where they are; kubeop has let go of them.
	KeptReason = "Kept"
	// RetryingReason: the world stood in the way, such as an API server, a webhook or a quota; it is tried again for ever.
	RetryingReason = "Retrying"
	// HeldReason: this input failed and is not tried again until it changes, or forceAt or resetAt asks for it.
	HeldReason = "Held"
	// VerificationFailedReason: the commit or tag is not signed by one of the keys of verify; what was delivered stays.
	VerificationFailedReason = "VerificationFailed"
	// DigestMismatchReason: the chart is not the one that the digest in the spec names.
	DigestMismatchReason = "DigestMismatch"
	// TooLargeReason: the chart, the release it makes, or the object itself is too large.
	TooLargeReason = "TooLarge"
	// TestFailedReason: a test of the chart failed.
	TestFailedReason = "TestFailed"
	// RollbackSucceededReason: the release was rolled back to the revision that the message names.
	RollbackSucceededReason = "RollbackSucceeded"
	// RollbackFailedReason: the rollback failed; it is tried again.
	RollbackFailedReason = "RollbackFailed"
	// UninstallSucceededReason: the release was uninstalled because its upgrade kept failing.
	UninstallSucceededReason = "UninstallSucceeded"
	// DriftDetectedReason: others changed the app's objects; the message says what.
	DriftDetectedReason = "DriftDetected"
	// DriftCorrectedReason: what others changed was put back; the message says what it was.
	DriftCorrectedReason = "DriftCorrected"
	// NoDriftDetectedReason: every object is as the source or the release says.
	NoDriftDetectedReason = "NoDriftDetected"
	// NotComparedReason: others changed the app's objects, and it is not known how: the API server refused to say what putting
	// that back would change, or there are so many that they wait to be compared; the message says which.
	NotComparedReason = "NotCompared"
	// InstallFailedReason: the first Helm install failed; it is tried again.
	InstallFailedReason = "InstallFailed"
	// UpgradeFailedReason: the Helm upgrade failed; it is tried again.
	UpgradeFailedReason = "UpgradeFailed"
	// ReleaseLockedReason: another Helm operation holds the release.
	ReleaseLockedReason = "ReleaseLocked"
	// ReleaseTakenReason: the release belongs to another app, or to people.
	ReleaseTakenReason = "ReleaseTaken"
	// UninstallFailedReason: the Helm uninstallation failed; it is tried again.
	UninstallFailedReason = "UninstallFailed"
	// ImageChosenReason: an image policy chose another image; the message says which.
	ImageChosenReason = "ImageChosen"
	// UnhealthyReason: an object failed, or was not healthy within the timeout; the message says which and why.
	UnhealthyReason = "Unhealthy"
)
