package v1alpha1

import "github.com/fluxcd/pkg/apis/meta"

// Summary conditions of every kind.
const (
	// ReadyCondition is the summary. It is True when every step succeeded for the object's current generation.
	ReadyCondition = meta.ReadyCondition
	// ReconcilingCondition is present, and True, while work is in progress or will be retried.
	ReconcilingCondition = meta.ReconcilingCondition
	// StalledCondition is present, and True, when only a change of the object or its source can help.
	StalledCondition = meta.StalledCondition
	// SuspendedCondition is present, and True, while the object is suspended. The message says until when, if it has an end.
	SuspendedCondition = "Suspended"
	// NearSizeLimitCondition is present, and True, while the object's size is close to the API server's limit.
	NearSizeLimitCondition = "NearSizeLimit"
)

// Steps of a Repository, in order.
const (
	// FetchedCondition: the commit the ref points to is in the local object store.
	FetchedCondition = "Fetched"
	// SyncedCondition: the cluster's Tenants, Projects and Apps match the valid parts of the commit.
	SyncedCondition = "Synced"
	// AcceptedCondition: history and signature of the commit allow it to follow the last accepted one, and no freeze is in force. Otherwise
	// the last accepted one stays in force.
	AcceptedCondition = "Accepted"
	// TreeValidCondition: every file of the commit is valid.
	TreeValidCondition = "TreeValid"
)

// Conditions of a Repository beside its steps.
const (
	// CommitStatusFailedCondition is present, and True, while the Git host does not accept the statuses of commits. The message says what
	// to do. Nothing else depends on it.
	CommitStatusFailedCondition = "CommitStatusFailed"
	// PlanCommentFailedCondition is present, and True, while the Git host lists no pull requests or accepts no plans, although spec.previews is
	// Plan. The message says what to do. Nothing else depends on it.
	PlanCommentFailedCondition = "PlanCommentFailed"
	// HookClosedCondition is present, and True, while the push hook has no key: the spec names no Secret, or the Secret or its key is
	// missing. Then only polling finds pushes.
	HookClosedCondition = "HookClosed"
)

// Steps of a Tenant and a Project, in order. A Project begins with DependenciesReadyCondition.
const (
	// NamespaceReadyCondition: the namespace exists, belongs to this object and has its labels.
	NamespaceReadyCondition = "NamespaceReady"
	// GuardrailsReadyCondition: the quota, limits and network isolation of a Project, or the quota and flow schemas of a Tenant, are in place.
	GuardrailsReadyCondition = "GuardrailsReady"
	// AccessReadyCondition: roles and service accounts are bound.
	AccessReadyCondition = "AccessReady"
	// RepositoryBoundCondition: the tenant's Repository is declared.
	RepositoryBoundCondition = "RepositoryBound"
	// DomainsReadyCondition: the tenant's domains overlap with none of another tenant.
	DomainsReadyCondition = "DomainsReady"
	// RegistriesReadyCondition: the project has the credentials of all Registries that its tenant may use. Ready does not depend on it.
	RegistriesReadyCondition = "RegistriesReady"
	// KeyReadyCondition: the tenant has the key that spec.sops asks for.
	KeyReadyCondition = "KeyReady"
)

// Step of a Registry.
const (
	// SecretReadyCondition: the Secret that the Registry names is there, and has credentials for its host.
	SecretReadyCondition = "SecretReady"
)

// Conditions of a Tenant beside its steps.
const (
	// OverBudgetCondition is present, and True, while the quotas of the projects have more than the budget of the tenant, because it was
	// lowered. The message says by how much. Nothing is deleted, and no quota is lowered; no project gets more of what is exceeded.
	OverBudgetCondition = "OverBudget"
	// NotEnforcedCondition is present, and True, while the API server does not enforce what the tenant's policies, or the rules that always hold,
	// forbid: an admission policy or its binding is missing, or denies nothing. status.guards says which. Ready does not depend on it.
	NotEnforcedCondition = "NotEnforced"
	// NotificationFailedCondition is present, and True, while a receiver does not accept a notification. The message says which, and what
	// to do. Nothing else depends on it.
	NotificationFailedCondition = "NotificationFailed"
)

// Conditions of a Tenant and a Project beside their steps.
const (
	// StoppedCondition is present while administrators stopped the tenant, and until everything is resumed. It is True
	// when nothing runs, and otherwise the message says what still does.
	StoppedCondition = "Stopped"
	// AppsReadyCondition is present if there are apps. It is True if all of them are Ready, and Unknown if the others are in progress. Ready
	// does not depend on it.
	AppsReadyCondition = "AppsReady"
)

// Condition of a Project beside its steps.
const (
	// PromotionPendingCondition is present, and True, while versions of the project in spec.promotion.from are not in this one yet. The message
	// says which, and what they wait for. Nothing else depends on it.
	PromotionPendingCondition = "PromotionPending"
)

// Step of the removal of a Registry.
const (
	// CredentialsRemovedCondition: no project has the credentials any more.
	CredentialsRemovedCondition = "CredentialsRemoved"
)

// Steps of the removal of a Tenant and a Project, in order.
const (
	// RepositoryUnboundCondition: the tenant's Repository is deleted, so nothing creates the tenant's objects again.
	RepositoryUnboundCondition = "RepositoryUnbound"
	// ProjectsRemovedCondition: the tenant's projects are deleted.
	ProjectsRemovedCondition = "ProjectsRemoved"
	// AppsRemovedCondition: the project's apps are deleted.
	AppsRemovedCondition = "AppsRemoved"
	// NamespaceRemovedCondition: the namespace and everything in it are deleted.
	NamespaceRemovedCondition = "NamespaceRemoved"
)

// Steps of an App, in order. Image, Git and Raw apps have Allowed and Applied, Helm apps have Released instead.
const (
	// DependenciesReadyCondition: the app's project and every object in its dependsOn exist and are ready. For a Project: its tenant.
	DependenciesReadyCondition = "DependenciesReady"
	// SourceReadyCondition: the commit, chart or folder was fetched. If it is False and Ready True, the app runs what was delivered last.
	SourceReadyCondition = "SourceReady"
	// RenderedCondition: objects were rendered from the source, or from the chart and its values.
	RenderedCondition = "Rendered"
	// AllowedCondition: the app may have every one of its objects.
	AllowedCondition = "Allowed"
	// HooksSucceededCondition is present if the app has hooks. It is True when all hooks of the current revision have run and none that
	// failed stops the delivery. status.hooks lists them.
	HooksSucceededCondition = "HooksSucceeded"
	// AppliedCondition: every object is applied, and objects that left the source are deleted.
	AppliedCondition = "Applied"
	// ReleasedCondition: the Helm release is deployed with this chart and these values.
	ReleasedCondition = "Released"
	// HealthyCondition: every object is healthy by kstatus, or by healthCheckExprs.
	HealthyCondition = "Healthy"
	// TestSuccessCondition: the chart's tests succeeded for the newest revision.
	TestSuccessCondition = "TestSuccess"
)

// Step of the removal of an App.
const (
	// RemovedCondition: everything that the deleted app delivered is removed.
	RemovedCondition = "Removed"
)

// Conditions of a Tenant, a Project and an App beside its steps.
const (
	// FrozenCondition is present, and True, while administrators froze the tenant. On an App it is also present while a freeze window keeps
	// the app at the revision of its source. The message says until when.
	FrozenCondition = "Frozen"
)

// Conditions of an App beside its steps.
const (
	// RemediatedCondition is present after repeated upgrade failures. It is True when the release was rolled back or uninstalled because
	// of them. It is removed when a different input is released. An app that has it is not Ready.
	RemediatedCondition = "Remediated"
	// DriftedCondition is True while objects of the app differ from its source or release. The message names the fields.
	DriftedCondition = "Drifted"
	// ImageKeptCondition is present, and True, while the registry does not answer. The app keeps the image that its policy chose last.
	ImageKeptCondition = "ImageKept"
	// ImageWriteFailedCondition is present, and True, while the image that a policy chose cannot be written to Git. The message says why.
	ImageWriteFailedCondition = "ImageWriteFailed"
	// PolicyWarningCondition is present, and True, while objects of the App break rules of policies whose action is Warn. The message names
	// the objects and the rules. They are delivered all the same.
	PolicyWarningCondition = "PolicyWarning"
	// OutdatedKeyCondition is present, and True, while files of the App are encrypted for an earlier key of the tenant and not for the present one.
	OutdatedKeyCondition = "OutdatedKey"
	// StartedEmptyCondition is present, and True, while a new volume is empty although a deleted app left a claim for a volume of the
	// same name. The message names the claim and the lines that would mount it.
	StartedEmptyCondition = "StartedEmpty"
)

// Condition of an App and a Project beside their steps.
const (
	// CurrentCondition is present, and False, while a newer commit has an invalid version of the object. The message names commit, file
	// and line. The last valid version stays in force, and Ready is about that version.
	CurrentCondition = "Current"
)

// Reasons of all kinds.
const (
	// SucceededReason: the step or the object is finished.
	SucceededReason = meta.SucceededReason
	// ProgressingReason: work is in progress. Nothing is wrong.
	ProgressingReason = meta.ProgressingReason
	// ProgressingWithRetryReason: the last attempt failed and will be retried.
	ProgressingWithRetryReason = meta.ProgressingWithRetryReason
	// FailedReason: the step failed, and no other reason describes the failure.
	FailedReason = meta.FailedReason
	// DeletingReason: what the object created is being deleted. The message names what is left.
	DeletingReason = "Deleting"
	// SuspendedReason, of Suspended: spec.suspend is true, or the annotation's time is not reached.
	SuspendedReason = "Suspended"
	// AccessDeniedReason: the API server denied a request of the operator or of the project's deployer.
	AccessDeniedReason = "AccessDenied"
	// TooLargeReason: the chart, its release or the object itself is too large.
	TooLargeReason = "TooLarge"
	// LeftRunningReason, of an event: the object was deleted and what it created keeps running. Either the object was suspended, its
	// definition was being deleted, or it was deleted while kubeop was not installed.
	LeftRunningReason = "LeftRunning"
	// DeletionHeldReason, of an event: the object is being deleted, but stays because kubeop is being uninstalled.
	DeletionHeldReason = "DeletionHeld"
)

// Reasons of a Repository and an App, about their source.
const (
	// AuthenticationFailedReason: the source, the Git host or a receiver of notifications rejected the credentials.
	AuthenticationFailedReason = "AuthenticationFailed"
	// SourceNotFoundReason: the repository, ref, path, chart or version, or the address of a receiver of notifications, does not exist.
	SourceNotFoundReason = "SourceNotFound"
	// InvalidSourceReason: the source's address or credentials are malformed.
	InvalidSourceReason = "InvalidSource"
	// FetchFailedReason: the source could not be fetched, or the Git host or a receiver of notifications did not answer. It is tried again.
	FetchFailedReason = "FetchFailed"
	// VerificationFailedReason: none of the keys in verify signed the commit or tag. The app keeps what was delivered last.
	VerificationFailedReason = "VerificationFailed"
	// WaitingForTurnReason: the maximum number of fetches or builds is running or waiting. Nothing is wrong. This one starts in its turn.
	WaitingForTurnReason = "WaitingForTurn"
)

// Reasons of a Repository, a Project and an App.
const (
	// InvalidTreeReason: at least one file is invalid. The message says which file and line, and why.
	InvalidTreeReason = "InvalidTree"
	// DependencyNotReadyReason: the object's parent or one of its dependencies is not ready.
	DependencyNotReadyReason = meta.DependencyNotReadyReason
)

// Reasons of a Tenant, a Project and an App.
const (
	// StoppedReason: administrators stopped the tenant, and nothing of it runs; an app waits for the end.
	StoppedReason = "Stopped"
	// ApplyFailedReason: the API server rejected an object. If it is invalid, only a change can help. Other failures are retried.
	ApplyFailedReason = "ApplyFailed"
	// NetworkPolicyNarrowedReason, of an event: a NetworkPolicy of the project opened what the project may not have any more, and kubeop took that
	// out of it.
	NetworkPolicyNarrowedReason = "NetworkPolicyNarrowed"
	// RemovalForcedReason, of an event: kubeop removed an obstacle to a deletion. It deleted pods that did not stop in time, or removed
	// finalizers on an administrator's request. The message says which.
	RemovalForcedReason = "RemovalForced"
)

// Reasons of a Repository.
const (
	// HistoryRewrittenReason: the commit does not descend from the last accepted commit. It waits for confirmation.
	HistoryRewrittenReason = "HistoryRewritten"
	// FrozenReason: administrators froze the tenant, or a freeze window is open: so the newest commit waits, and an app's source stays at its
	// revision. The message says until when, and whether a confirmation ends the wait.
	FrozenReason = "Frozen"
	// DeletionsHeldReason: the commit makes deletions that wait for confirmation.
	DeletionsHeldReason = "DeletionsHeld"
	// HookNotSetReason: the spec names no Secret for the push hook.
	HookNotSetReason = "HookNotSet"
	// SecretMissingReason: a Secret that the spec names does not exist, or, of the push hook, has no key "token". The message says how to create it.
	SecretMissingReason = "SecretMissing"
	// SyncFailedReason: the API server rejected an object. The sync is retried.
	SyncFailedReason = "SyncFailed"
)

// Reasons of a Tenant and a Project.
const (
	// StoppingReason, of Stopped: pods are about to end.
	StoppingReason = "Stopping"
	// StillRunningReason, of Stopped: pods run on, because nothing would make them again.
	StillRunningReason = "StillRunning"
	// ResumingReason, of Stopped: pods are admitted again, and controllers are woken to make them.
	ResumingReason = "Resuming"
	// BudgetExceededReason: the quotas of projects do not fit into the budget of their tenant. The message names the limit and what is left.
	BudgetExceededReason = "BudgetExceeded"
	// CostBudgetReachedReason, of an event of a Tenant: what its usage of the month costs, or is going to cost, reaches a threshold of its cost budget.
	CostBudgetReachedReason = "CostBudgetReached"
	// RenderedOnlyReason is the reason of NotEnforced: at most kubeop checks, and only apps.
	RenderedOnlyReason = "RenderedOnly"
	// InvalidBudgetReason: the budget of a tenant has a negative amount, or names what the quotas of projects do not count.
	InvalidBudgetReason = "InvalidBudget"
	// AppsNotReadyReason: at least one app is not Ready, and not only in progress. The message names the first and why.
	AppsNotReadyReason = "AppsNotReady"
	// NamespaceTakenReason: the namespace exists and belongs to another owner. kubeop never adopts such a namespace.
	NamespaceTakenReason = "NamespaceTaken"
	// DomainTakenReason: a domain of the Tenant overlaps with one of an older Tenant.
	DomainTakenReason = "DomainTaken"
	// KeyUnusableReason: the Secret with the tenant's key for encrypted files is gone, is another tenant's, or holds another key than before.
	KeyUnusableReason = "KeyUnusable"
	// NamespaceRetainedReason, of an event: the namespace was kept because claims in it hold data. The message names them.
	NamespaceRetainedReason = "NamespaceRetained"
	// EventsRefusedReason, of an event of a Project: its tenant has too many Events, and this project more than its equal part, so its apps may create
	// no more for now.
	EventsRefusedReason = "EventsRefused"
	// NamespaceAdoptedReason, of an event: the object took back a namespace that an earlier object of the same tenant created.
	NamespaceAdoptedReason = "NamespaceAdopted"
	// VolumesRetainedReason, of an event: an annotation allows the deletion of a namespace. The volumes of its claims will be kept.
	VolumesRetainedReason = "VolumesRetained"
)

// Reasons of a Project.
const (
	// DeliveredReason, of an event: the apps delivered a commit. The message names its author, and the apps.
	DeliveredReason = "Delivered"
	// PromotionRefusedReason: the version of an app cannot be promoted, until a file changes. The message says why.
	PromotionRefusedReason = "PromotionRefused"
	// PromotionHeldReason: a promotion waits for a confirmation.
	PromotionHeldReason = "PromotionHeld"
	// PullRequestOpenReason: a promotion waits for the merge of its pull request.
	PullRequestOpenReason = "PullRequestOpen"
	// PolicyNotFoundReason: the Tenant names a Policy that does not exist.
	PolicyNotFoundReason = "PolicyNotFound"
	// QuotaExceededReason: a project requests more than its tenant's quota allows.
	QuotaExceededReason = "QuotaExceeded"
)

// Reasons of an App.
const (
	// InvalidExpressionReason: a CEL expression in the spec is invalid, or dependsOn names an object that apps may not depend on.
	InvalidExpressionReason = "InvalidExpression"
	// PreHookFailedReason: a pre hook of the revision failed. Nothing of the revision was applied, unless onFailure is Continue.
	PreHookFailedReason = "PreHookFailed"
	// PostHookFailedReason: a post hook of the revision failed. The applied objects stay.
	PostHookFailedReason = "PostHookFailed"
	// RenderFailedReason: the source does not render to valid objects.
	RenderFailedReason = "RenderFailed"
	// DecryptionFailedReason: the given keys cannot decrypt a file, or the file was changed after its encryption.
	DecryptionFailedReason = "DecryptionFailed"
	// ValuesFailedReason: a values file, or a ConfigMap or Secret with values or variables, is missing or is not YAML.
	ValuesFailedReason = "ValuesFailed"
	// NotAllowedReason: an object is cluster-scoped, belongs to another owner, is of kubeop's own API group, or breaks a Policy; or a Policy refuses the source.
	NotAllowedReason = "NotAllowed"
	// PruneFailedReason: an object that left the source or the chart could not be deleted. The deletion is retried.
	PruneFailedReason = "PruneFailed"
	// ClaimsRetainedReason, of an event: StatefulSets were applied with a persistentVolumeClaimRetentionPolicy of Retain. Their
	// manifests would have let Kubernetes delete the claims.
	ClaimsRetainedReason = "ClaimsRetained"
	// PolicyWarningReason: objects break rules of policies whose action is Warn.
	PolicyWarningReason = "PolicyWarning"
	// EarlierKeyReason: files are encrypted for an earlier key of the tenant.
	EarlierKeyReason = "EarlierKey"
	// ClaimLeftBehindReason: a deleted app left a claim for a volume that has the name of one of this app's volumes.
	ClaimLeftBehindReason = "ClaimLeftBehind"
	// StillDeclaredReason: movedFrom names an app that is still declared and still owns its claims.
	StillDeclaredReason = "StillDeclared"
	// ClaimMissingReason: claimName names a claim that does not exist.
	ClaimMissingReason = "ClaimMissing"
	// ClaimsInTheWayReason: claims that hold data belong to an object of the release. kubeop does not delete that object, so the release
	// is not uninstalled or upgraded.
	ClaimsInTheWayReason = "ClaimsInTheWay"
	// KeptReason: objects that are protected from deletion were kept. kubeop no longer manages them.
	KeptReason = "Kept"
	// RetryingReason: something outside the app failed, such as the API server, a webhook or a quota. kubeop retries without a limit.
	RetryingReason = "Retrying"
	// HeldReason: this input failed. It is not retried until it changes, or until forceAt or resetAt requests it.
	HeldReason = "Held"
	// DigestMismatchReason: the chart does not have the digest that the spec requires.
	DigestMismatchReason = "DigestMismatch"
	// TestFailedReason: a test of the chart failed.
	TestFailedReason = "TestFailed"
	// RollbackSucceededReason: the release was rolled back to the revision in the message.
	RollbackSucceededReason = "RollbackSucceeded"
	// RollbackFailedReason: the rollback failed. It is retried.
	RollbackFailedReason = "RollbackFailed"
	// UninstallSucceededReason: the release was uninstalled because its upgrade failed repeatedly.
	UninstallSucceededReason = "UninstallSucceeded"
	// DriftDetectedReason: others changed the app's objects. The message lists the changes.
	DriftDetectedReason = "DriftDetected"
	// DriftCorrectedReason: kubeop reverted changes that others made. The message lists them.
	DriftCorrectedReason = "DriftCorrected"
	// NoDriftDetectedReason: every object matches the source or the release.
	NoDriftDetectedReason = "NoDriftDetected"
	// NotComparedReason: others changed the app's objects, but the changes are not known. Either the API server rejected the dry run, or
	// many objects still wait for comparison. The message says which.
	NotComparedReason = "NotCompared"
	// InstallFailedReason: the first Helm install failed. It is retried.
	InstallFailedReason = "InstallFailed"
	// UpgradeFailedReason: the Helm upgrade failed. It is retried.
	UpgradeFailedReason = "UpgradeFailed"
	// ReleaseLockedReason: another Helm operation has locked the release.
	ReleaseLockedReason = "ReleaseLocked"
	// ReleaseTakenReason: the release belongs to another app, or was installed without kubeop.
	ReleaseTakenReason = "ReleaseTaken"
	// UninstallFailedReason: the Helm uninstall failed. It is retried.
	UninstallFailedReason = "UninstallFailed"
	// ImageChosenReason: an image policy chose a different image. The message names it.
	ImageChosenReason = "ImageChosen"
	// WriteFailedReason: the image that a policy chose, or a promoted version, could not be written to Git. The message says why.
	WriteFailedReason = "WriteFailed"
	// UnhealthyReason: an object failed, or did not become healthy within the timeout. The message says which and why.
	UnhealthyReason = "Unhealthy"
)

// Reasons of a Registry and a Project.
const (
	// SecretInvalidReason: the Secret of a Registry has no credentials for its host, or they cannot be used. The message says which key is wrong.
	SecretInvalidReason = "SecretInvalid"
	// PullSecretRefusedReason: a Secret that kubeop did not make has the name of a pull Secret, or the API server refuses the pull Secret.
	PullSecretRefusedReason = "PullSecretRefused"
	// AccountDeliveredReason: an app delivers the default service account with imagePullSecrets, so kubeop does not change them.
	AccountDeliveredReason = "AccountDelivered"
)
