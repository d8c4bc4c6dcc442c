package v1alpha1

import "strings"

// Labels that name the owner of an object. kubeop sets them on everything it applies and rejects manifests that set them. Its watches
// select on TenantLabel.
const (
	// TenantLabel names the tenant that owns the object.
	TenantLabel = "paas.kubeop.io/tenant"
	// ProjectLabel names the project, unique within its tenant.
	ProjectLabel = "paas.kubeop.io/project"
	// AppLabel names the app, unique within its project.
	AppLabel = "paas.kubeop.io/app"
	// HookLabel on a Job names its hook, as "<phase>-<name>".
	HookLabel = "paas.kubeop.io/hook"
	// AdoptedLabel on the namespace of a project of the platform says whether the namespace existed before the project: "true" or "false".
	// kubeop deletes a namespace with "false" only.
	AdoptedLabel = "paas.kubeop.io/adopted"
	// RepositoryLabel names the Repository that declares the object.
	RepositoryLabel = "paas.kubeop.io/repository"
)

// OwnerLabels are the labels that name the owner of an object.
var OwnerLabels = []string{TenantLabel, ProjectLabel, AppLabel, RepositoryLabel}

// Annotations that kubeop sets on objects it creates from a commit.
const (
	// FolderAnnotation is the object's folder in its repository, relative to the root of the repository.
	FolderAnnotation = "paas.kubeop.io/folder"
	// TreeAnnotation is the Git tree hash of that folder, a digest of all its content. On a Tenant or Project it is the hash of the file
	// only.
	TreeAnnotation = "paas.kubeop.io/tree"
	// SecretRefAnnotation is the place of spec.secretRef in the repository, as "file:line:column", on a Registry.
	SecretRefAnnotation = "paas.kubeop.io/secret-ref-at"
	// BudgetAnnotation is the place of spec.budget in the repository, as "file:line:column", on a Tenant that has a budget.
	BudgetAnnotation = "paas.kubeop.io/budget-at"
	// RevisionAnnotation is the revision at which the folder last changed, as "branch@sha1:<commit>".
	RevisionAnnotation = "paas.kubeop.io/revision"
	// AuthorAnnotation is the name of the author of that commit, on an App or a PriceList.
	AuthorAnnotation = "paas.kubeop.io/author"
	// PreviewOfAnnotation on a preview and its Apps names the project that it is a preview of, and BranchAnnotation its branch.
	PreviewOfAnnotation = "paas.kubeop.io/preview-of"
	BranchAnnotation    = "paas.kubeop.io/branch"
	// HookInputAnnotation on a hook's Job identifies the revision it runs for, as in status.hooks.
	HookInputAnnotation = "paas.kubeop.io/hook-input"
	// ConfirmAnnotation confirms held deletions. Its value is status.heldToken of the Repository or App. On an App that is being
	// deleted, ConfirmAll also deletes all protected objects.
	ConfirmAnnotation = "paas.kubeop.io/confirm-deletions"
	// ConfirmHistoryAnnotation on a Repository names one commit, by its hash or revision, that is accepted although it does not descend
	// from the last one. kubeop removes the annotation after use.
	ConfirmHistoryAnnotation = "paas.kubeop.io/confirm-history"
	// ConfirmPromotionAnnotation on a Project has the tokens of the promotions that are confirmed, separated by commas. The condition
	// PromotionPending names them.
	ConfirmPromotionAnnotation = "paas.kubeop.io/confirm-promotion"
	// ConfirmFreezeAnnotation on a Repository names one commit, by its hash or revision, that is applied although a freeze is in force.
	// kubeop removes the annotation after use.
	ConfirmFreezeAnnotation = "paas.kubeop.io/confirm-freeze"
	// SuspendAnnotation on an App or a Repository stops all reconciliation of it, except its deletion, until the time that is its value, in
	// RFC 3339. It ends by itself at that time.
	SuspendAnnotation = "paas.kubeop.io/suspend-until"
	// ResetAnnotation on an App requests that its failures are forgotten. It is Flux's annotation; Flux's API has no constant for it.
	ResetAnnotation = "reconcile.fluxcd.io/resetAt"
	// PushedAnnotation on a Repository reports a push to another repository, of Git, charts or images, from which the tenant's apps are made.
	// Its value is the time, a space and the URL. The push hook sets it.
	PushedAnnotation = "paas.kubeop.io/pushed"
	// HookCalledAnnotation on a Repository is the time, in RFC 3339, of the last push to it that the push hook reported.
	HookCalledAnnotation = "paas.kubeop.io/hook-called"
	// ConfirmedClaimsAnnotation on a deleted Tenant or Project holds the time and the UIDs of the claims that a confirmation named,
	// separated by commas. Only these claims are deleted by a ClaimDeletionPolicy of Delete. kubeop sets it before the deletion. It is
	// valid for deletions within five minutes.
	ConfirmedClaimsAnnotation = "paas.kubeop.io/confirmed-claims"
	// AllowDeletionAnnotation allows kubectl to delete an object: a CustomResourceDefinition of kubeop, a Tenant, a Project or a
	// tenant's namespace. Its value is the object's name. Admission denies the deletion without it.
	AllowDeletionAnnotation = "paas.kubeop.io/allow-deletion"
	// TenantUIDAnnotation on a namespace is the UID of the Tenant that it belongs to.
	TenantUIDAnnotation = "paas.kubeop.io/tenant-uid"
	// TenantIdentityAnnotation on a namespace is a digest of that Tenant's identity: its repository, or its owners and folder. A Tenant
	// with the same name and identity, such as one restored from a backup, adopts the namespace.
	TenantIdentityAnnotation = "paas.kubeop.io/tenant-identity"
	// ClaimPolicyAnnotation on a PersistentVolumeClaim is the claimDeletionPolicy that its App sets. It stays after the App is deleted.
	ClaimPolicyAnnotation = "paas.kubeop.io/claim-deletion-policy"
	// VolumesRetainedAnnotation on a namespace with AllowDeletionAnnotation states that its claims' volumes are kept, as "<n> volumes:
	// <names>". kubeop sets it once that is true, and removes it together with AllowDeletionAnnotation.
	VolumesRetainedAnnotation = "paas.kubeop.io/volumes-retained"
	// ForceRemovalAnnotation on an App, Project or Tenant that is being deleted removes foreign finalizers from the objects it created.
	// Its value is the object's name. Only administrators, who may update Tenants, may set it.
	ForceRemovalAnnotation = "paas.kubeop.io/force-removal"
)

// Annotations of a tenant's namespaces that carry settings of the Tenant and, in those of projects, of its Policies. The chart's admission policies read them.
const (
	// MaxObjectSizeAnnotation is spec.maxObjectSize, in bytes.
	MaxObjectSizeAnnotation = "paas.kubeop.io/max-object-size"
	// MaxGracePeriodAnnotation is spec.maxTerminationGracePeriod, in seconds.
	MaxGracePeriodAnnotation = "paas.kubeop.io/max-grace-period"
	// PriorityClassesAnnotation is spec.priorityClasses, sorted and separated by commas.
	PriorityClassesAnnotation = "paas.kubeop.io/priority-classes"
	// TaintsAnnotation is spec.taints, sorted and separated by commas.
	TaintsAnnotation = "paas.kubeop.io/taints"
	// IngressAnnotationsAnnotation is spec.ingressAnnotations, sorted and separated by commas.
	IngressAnnotationsAnnotation = "paas.kubeop.io/ingress-annotations"
	// CSIDriversAnnotation is spec.csiDrivers, sorted and separated by commas.
	CSIDriversAnnotation = "paas.kubeop.io/csi-drivers"
	// EndpointsWritersAnnotation is spec.endpointsWriters, sorted and separated by commas.
	EndpointsWritersAnnotation = "paas.kubeop.io/endpoints-writers"
	// ExternalNamesAnnotation is services.externalNames of all Policies of the project together, sorted and separated by commas; always there, empty for none.
	ExternalNamesAnnotation = "paas.kubeop.io/external-names"
	// ExternalIPsAnnotation is services.externalIPs of all Policies of the project together, sorted and separated by commas; always there, empty for none.
	ExternalIPsAnnotation = "paas.kubeop.io/external-ips"
)

// Label of the namespace of a project in which the chart's admission policies enforce the Guardrails.
const (
	GuardrailsLabel = "paas.kubeop.io/guardrails"
	// GuardrailsEnforced is the value of GuardrailsLabel. While the namespace has no Guardrails, nothing may start in it.
	GuardrailsEnforced = "enforced"
)

// ManagedByLabel with the value FieldManager is on the HostnameClaims that kubeop made, which it also deletes.
const ManagedByLabel = "app.kubernetes.io/managed-by"

// FrozenLabel is "true" on the namespaces and the Repository of a tenant that administrators froze. The chart's admission policies
// kubeop-frozen and kubeop-requests read it.
const FrozenLabel = "paas.kubeop.io/frozen"

// Marks of a tenant that administrators stopped.
const (
	// StoppedLabel is "true" on the namespaces of its projects, in which the chart's admission policy kubeop-stopped refuses pods and Jobs, and
	// on the Jobs that kubeop suspended and resumes again.
	StoppedLabel = "paas.kubeop.io/stopped"
	// ResumedAtAnnotation on the ResourceQuota kubeop-stopped of a namespace is the time, in RFC 3339, since when it admits pods again.
	ResumedAtAnnotation = "paas.kubeop.io/resumed-at"
	// WokenAnnotation on a ReplicaSet, StatefulSet or DaemonSet wakes its controller for seconds after a stop; then it is removed.
	WokenAnnotation = "paas.kubeop.io/woken"
)

// Label of a project's namespace that has too many Events. The chart's admission policy kubeop-events reads it.
const (
	EventsLabel = "paas.kubeop.io/events"
	// EventsRefused is the value: apps may create no more Events there.
	EventsRefused = "refused"
)

// Label and annotations of a namespace that was kept after its Project or Tenant, because claims in it hold data.
const (
	// RetainedLabel is "true" on such a namespace.
	RetainedLabel = "paas.kubeop.io/retained"
	// RetainedAtAnnotation is the time, in RFC 3339, when its Project or Tenant was deleted.
	RetainedAtAnnotation = "paas.kubeop.io/retained-at"
	// RetainedBecauseAnnotation names the deleted object and explains what to do.
	RetainedBecauseAnnotation = "paas.kubeop.io/retained-because"
	// RetainedClaimsAnnotation names the claims, with their sizes.
	RetainedClaimsAnnotation = "paas.kubeop.io/retained-claims"
)

// PodsOfLabel on a workload that moved here from another App of the project names that App, as the labels of the pod template still do:
// changing them alone would restart the pods. It is removed with the next change of the template. It is no annotation, because the API
// server takes a new annotation of a Deployment for a new generation.
const PodsOfLabel = "paas.kubeop.io/pods-of"

// PruneAnnotation protects a delivered object from deletion when it leaves its source or when its app is deleted. It is the only
// kubeop annotation that a manifest may have.
const (
	PruneAnnotation = "paas.kubeop.io/prune"
	// PruneConfirm delays the deletion until ConfirmAnnotation confirms it.
	PruneConfirm = "confirm"
	// PruneDisabled never deletes the object.
	PruneDisabled = "disabled"
	// ConfirmAll is the value of ConfirmAnnotation that lets a deleted App delete its protected objects too.
	ConfirmAll = "all"
)

const (
	// Group is the prefix of every label and annotation of kubeop.
	Group = "paas.kubeop.io"
	// Finalizer keeps an object until everything it created is deleted.
	Finalizer = "paas.kubeop.io/finalizer"
	// FieldManager is the field manager of kubeop's server-side apply.
	FieldManager = "kubeop"
	// Deployer is the service account in each project namespace that kubeop impersonates to read and write an app's objects.
	Deployer = "kubeop-deployer"
	// PlatformDeployer is the service account in the operator's namespace that kubeop impersonates to deliver the apps of the platform
	// itself. Of the same name is the ClusterRole that it has in the namespaces of the platform's projects.
	PlatformDeployer = "kubeop-platform-deployer"
	// PlatformTenant is the tenant that the projects of the platform itself belong to. There is no Tenant object of that name.
	PlatformTenant = "platform"
	// PlatformRepository is the name of the administrators' repository.
	PlatformRepository = "platform"
)

// HomeNamespace is the namespace that holds a tenant's Projects.
func HomeNamespace(tenant string) string { return "kubeop-" + tenant }

// ProjectNamespace is where a project's Apps and what they deliver are. Tenant names have no dash, so every project has its own. A project
// of the platform itself has the name of its namespace.
func ProjectNamespace(tenant, project string) string {
	if tenant == PlatformTenant {
		return project
	}
	return HomeNamespace(tenant) + "-" + project
}

// TenantOf returns the tenant of a project's namespace by its name: PlatformTenant if it does not start as the names of tenants' namespaces do,
// and "" for a namespace that can be no project's.
func TenantOf(namespace string) string {
	home, ok := strings.CutPrefix(namespace, HomeNamespace(""))
	if !ok {
		return PlatformTenant
	}
	tenant, project, _ := strings.Cut(home, "-")
	if tenant == PlatformTenant || project == "" {
		return ""
	}
	return tenant
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
type LabelValue string

// AnnotationValue is the value of an annotation.
// +kubebuilder:validation:MaxLength=1024
type AnnotationValue string
