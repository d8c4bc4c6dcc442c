package access

// Resource is a kind of thing that operations read or change.
type Resource string

// Verb is what an operation does to a resource.
type Verb string

// The resources and verbs of all operations.
const (
	Caller Resource = "caller"
	Tokens Resource = "tokens"
	JWTs   Resource = "jwts"
	Audit  Resource = "audit"

	Tenants  Resource = "tenants"
	Projects Resource = "projects"
	Apps     Resource = "apps"
	Logs     Resource = "logs"
	Webhooks Resource = "webhooks"
	Usage    Resource = "usage"

	Kubeconfigs Resource = "kubeconfigs"
	Prices      Resource = "prices"
	Invoices    Resource = "invoices"

	Read   Verb = "read"
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"

	// To get a kubeconfig with a role is a right of its own.
	ActAsView  Verb = "act as view"
	ActAsEdit  Verb = "act as edit"
	ActAsAdmin Verb = "act as admin"
)

// Roles are all roles, in the order of the columns of docs/api/roles.md.
var Roles = []Role{Admin, TenantView, TenantEdit, TenantAdmin, ProjectView, ProjectEdit, ProjectDeploy}

type roles map[Role]bool

func only(these ...Role) roles {
	all := roles{}
	for _, role := range these {
		all[role] = true
	}
	return all
}

// table is the only place that says who may do what. What is not in it is forbidden. A role of a tenant or project counts only there. A caller who may
// not even read a thing gets the answer for a thing that does not exist.
var table = map[Resource]map[Verb]roles{
	// The caller, with its own scopes.
	Caller: {Read: only(Roles...)},
	// Tokens of other tenants, and of the platform, are invisible.
	Tokens: {
		Read:   only(Admin, TenantAdmin),
		Create: only(Admin, TenantAdmin),
		Delete: only(Admin, TenantAdmin),
	},
	// A JWT has a role in one project.
	JWTs: {Create: only(Admin, TenantAdmin)},
	// The audit log.
	Audit: {Read: only(Admin, TenantAdmin)},
	// The settings of a tenant limit it, so the tenant does not write them.
	Tenants: {
		Read:   only(Admin, TenantView, TenantEdit, TenantAdmin),
		Create: only(Admin),
		Update: only(Admin),
		Delete: only(Admin),
	},
	// A list has only the projects that the caller may read. Who may update a project also reads its file.
	Projects: {
		Read:   only(Roles...),
		Create: only(Admin, TenantEdit, TenantAdmin),
		Update: only(Admin, TenantEdit, TenantAdmin),
		Delete: only(Admin, TenantAdmin),
	},
	Apps: {
		Read:   only(Roles...),
		Create: only(Admin, TenantEdit, TenantAdmin, ProjectEdit),
		Update: only(Admin, TenantEdit, TenantAdmin, ProjectEdit, ProjectDeploy),
		Delete: only(Admin, TenantEdit, TenantAdmin, ProjectEdit),
	},
	// Webhooks of a tenant get messages about everything in it. Webhooks of the platform, and of other tenants, are invisible.
	Webhooks: {
		Read:   only(Admin, TenantAdmin),
		Create: only(Admin, TenantAdmin),
		Update: only(Admin, TenantAdmin),
		Delete: only(Admin, TenantAdmin),
	},
	// A kubeconfig is of who got it, who may always read and delete it; these are the rights to those of others.
	Kubeconfigs: {
		ActAsView:  only(Roles...),
		ActAsEdit:  only(Admin, TenantEdit, TenantAdmin, ProjectEdit),
		ActAsAdmin: only(Admin, TenantAdmin),
		Read:       only(Admin, TenantAdmin),
		Delete:     only(Admin, TenantAdmin),
	},
	// What the pods of an app write.
	Logs: {Read: only(Roles...)},
	// What apps use. Who pays for it does not write it.
	Usage: {
		Read:   only(Roles...),
		Create: only(Admin),
	},
	// The price list of a tenant. Prices are written in the platform repository only.
	Prices: {Read: only(Admin, TenantView, TenantEdit, TenantAdmin)},
	// What a tenant pays. To create one is to close a month, and to credit an invoice; nobody changes or deletes one.
	Invoices: {
		Read:   only(Admin, TenantView, TenantEdit, TenantAdmin),
		Create: only(Admin),
	},
}
