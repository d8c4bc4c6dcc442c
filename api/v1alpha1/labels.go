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
	// RepositoryLabel names the Repository whose commit declares the object.
	RepositoryLabel = "paas.kubeop.io/repository"
)

// Annotations kubeop writes on the objects it creates from a commit.
const (
	// FolderAnnotation is the object's folder in its repository, relative to the root of the repository.
	FolderAnnotation = "paas.kubeop.io/folder"
	// TreeAnnotation is the Git tree hash of that folder: the digest of everything the app is made from.
	TreeAnnotation = "paas.kubeop.io/tree"
	// RevisionAnnotation is the revision at which the folder last changed, as "branch@sha1:<commit>".
	RevisionAnnotation = "paas.kubeop.io/revision"
	// ConfirmAnnotation on a Repository names the revision whose held deletions may go ahead.
	ConfirmAnnotation = "paas.kubeop.io/confirm-deletions"
	// TenantUIDAnnotation on a namespace is the UID of the Tenant it was made for.
	TenantUIDAnnotation = "paas.kubeop.io/tenant-uid"
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
