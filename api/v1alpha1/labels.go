package v1alpha1

// Labels that say who an object belongs to. kubeop sets them on everything it applies and refuses manifests that set
// them; its watches select on TenantLabel.
const (
	// TenantLabel names the tenant that owns the object.
	TenantLabel = "paas.kubeop.io/tenant"
	// ProjectLabel names the project, unique within its tenant.
	ProjectLabel = "paas.kubeop.io/project"
	// AppLabel names the app, unique within its project.
	AppLabel = "paas.kubeop.io/app"
	// HookLabel on a Job names the hook it runs, as "<phase>-<name>".
	HookLabel = "paas.kubeop.io/hook"
	// RepositoryLabel names the Repository whose commit declares the object.
	RepositoryLabel = "paas.kubeop.io/repository"
)

// OwnerLabels are the labels that name the owner of an object.
var OwnerLabels = []string{TenantLabel, ProjectLabel, AppLabel, RepositoryLabel}

// Annotations kubeop writes on the objects it creates from a commit.
const (
	// FolderAnnotation is the object's folder in its repository, relative to the root of the repository.
	FolderAnnotation = "paas.kubeop.io/folder"
	// TreeAnnotation is the Git tree hash of that folder: the digest of everything the app is made from. On a Tenant or
	// Project it is the hash of the file alone.
	TreeAnnotation = "paas.kubeop.io/tree"
	// RevisionAnnotation is the revision at which the folder last changed, as "branch@sha1:<commit>".
	RevisionAnnotation = "paas.kubeop.io/revision"
	// HookInputAnnotation on a hook's Job is what the hook runs for, as in status.hooks.
	HookInputAnnotation = "paas.kubeop.io/hook-input"
	// ConfirmAnnotation lets held deletions go ahead: it is status.heldToken of the Repository or App. On an App that is being
	// deleted ConfirmAll lets everything go that is protected.
	ConfirmAnnotation = "paas.kubeop.io/confirm-deletions"
	// ConfirmHistoryAnnotation on a Repository names the one commit, by its hash or revision, that may follow though it does not
	// descend from the one before it. kubeop removes it when it was used.
	ConfirmHistoryAnnotation = "paas.kubeop.io/confirm-history"
	// PushedAnnotation on a Repository tells of a push to another Git repository, from which apps of its tenant are made: the
	// time, a space and the URL. The push hook writes it.
	PushedAnnotation = "paas.kubeop.io/pushed"
	// ConfirmedClaimsAnnotation on a Tenant or Project that is deleted holds the time and the UIDs of the claims that a confirmation
	// named, separated by commas: the only ones that a ClaimDeletionPolicy of Delete lets go. kubeop writes it before it deletes;
	// it counts for a deletion within five minutes.
	ConfirmedClaimsAnnotation = "paas.kubeop.io/confirmed-claims"
	// AllowDeletionAnnotation on a CustomResourceDefinition of kubeop, a Tenant, a Project or a tenant's namespace is its own
	// name: without it admission refuses kubectl's deletion.
	AllowDeletionAnnotation = "paas.kubeop.io/allow-deletion"
	// TenantUIDAnnotation on a namespace is the UID of the Tenant it was made for.
	TenantUIDAnnotation = "paas.kubeop.io/tenant-uid"
	// TenantIdentityAnnotation on a namespace is a digest of who that Tenant was: its repository, or its owners and folder.
	// A Tenant of the same name and identity, such as one restored from a backup, has its namespaces again.
	TenantIdentityAnnotation = "paas.kubeop.io/tenant-identity"
	// ClaimPolicyAnnotation on a PersistentVolumeClaim is the claimDeletionPolicy that its App sets itself. It outlives the App.
	ClaimPolicyAnnotation = "paas.kubeop.io/claim-deletion-policy"
	// VolumesRetainedAnnotation on a namespace that AllowDeletionAnnotation allows to be deleted says that the volumes of its
	// claims outlive it, as "<n> volumes: <names>". kubeop writes it once they do, and takes it away when the other goes.
	VolumesRetainedAnnotation = "paas.kubeop.io/volumes-retained"
	// ForceRemovalAnnotation on an App, Project or Tenant that is being deleted is its own name: foreign finalizers, which hold its
	// removal, are taken off what it made. Only administrators may set it, those who may update Tenants.
	ForceRemovalAnnotation = "paas.kubeop.io/force-removal"
)

// Annotations of a tenant's namespaces from which the chart's admission policies read what administrators set on the Tenant.
const (
	// MaxObjectSizeAnnotation is spec.maxObjectSize, in bytes.
	MaxObjectSizeAnnotation = "paas.kubeop.io/max-object-size"
	// MaxGracePeriodAnnotation is spec.maxTerminationGracePeriod, in seconds.
	MaxGracePeriodAnnotation = "paas.kubeop.io/max-grace-period"
	// PriorityClassesAnnotation is spec.priorityClasses, sorted and separated by commas.
	PriorityClassesAnnotation = "paas.kubeop.io/priority-classes"
)

// Marks of a namespace that outlived its Project or Tenant because claims in it hold data.
const (
	// RetainedLabel is "true" on such a namespace.
	RetainedLabel = "paas.kubeop.io/retained"
	// RetainedAtAnnotation is when it was left, as RFC 3339 has it.
	RetainedAtAnnotation = "paas.kubeop.io/retained-at"
	// RetainedBecauseAnnotation says what was deleted and what to do.
	RetainedBecauseAnnotation = "paas.kubeop.io/retained-because"
	// RetainedClaimsAnnotation names the claims, with their sizes.
	RetainedClaimsAnnotation = "paas.kubeop.io/retained-claims"
)

// PruneAnnotation on a delivered object protects it from deletion when it leaves its source or its app. It is the only
// mark of kubeop's that a manifest may carry.
const (
	PruneAnnotation = "paas.kubeop.io/prune"
	// PruneConfirm has the deletion wait until ConfirmAnnotation allows it.
	PruneConfirm = "confirm"
	// PruneDisabled leaves the object where it is, for good.
	PruneDisabled = "disabled"
	// ConfirmAll is the value of ConfirmAnnotation that has a deleted App delete what it protects, too.
	ConfirmAll = "all"
)

const (
	// Group is the prefix of every label and annotation of kubeop.
	Group = "paas.kubeop.io"
	// Finalizer keeps an object until what it made is gone.
	Finalizer = "paas.kubeop.io/finalizer"
	// FieldManager owns the fields kubeop applies with server-side apply.
	FieldManager = "kubeop"
	// Deployer is the service account in each project namespace as which everything of an app is read and written.
	Deployer = "kubeop-deployer"
	// PlatformRepository is the name of the administrators' repository.
	PlatformRepository = "platform"
)

// HomeNamespace is the namespace that holds a tenant's Projects.
func HomeNamespace(tenant string) string { return "kubeop-" + tenant }

// ProjectNamespace is the namespace that holds a project's Apps and everything they deliver. Tenant names hold no
// dash, so no two projects share one.
func ProjectNamespace(tenant, project string) string { return "kubeop-" + tenant + "-" + project }
