package access

// Resource is a kind of things that operations are about.
type Resource string

// Verb is what an operation does to a resource.
type Verb string

// The resources and verbs of the operations that there are.
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

	Read   Verb = "read"
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
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

// table is the only place that says who may do what. What is not in it is forbidden. A role of tenants or projects counts only in its own; where
// the caller may not even read, the answer is as if there were nothing.
var table = map[Resource]map[Verb]roles{
	// What the caller itself is and holds.
	Caller: {Read: only(Roles...)},
	// A token of another tenant, and of the platform, is invisible.
	Tokens: {
		Read:   only(Admin, TenantAdmin),
		Create: only(Admin, TenantAdmin),
		Delete: only(Admin, TenantAdmin),
	},
	// A JWT has a role in one project.
	JWTs: {Create: only(Admin, TenantAdmin)},
	// What was written, by whom and from where.
	Audit: {Read: only(Admin, TenantAdmin)},
	// A tenant's settings limit the tenant, so it does not write them.
	Tenants: {
		Read:   only(Admin, TenantView, TenantEdit, TenantAdmin),
		Create: only(Admin),
		Update: only(Admin),
		Delete: only(Admin),
	},
	// Of a list, each caller gets those projects that are its own. Who may update also reads the file.
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
	// Webhooks of a tenant get what happens to all of it. Those of the platform, and of other tenants, are invisible.
	Webhooks: {
		Read:   only(Admin, TenantAdmin),
		Create: only(Admin, TenantAdmin),
		Update: only(Admin, TenantAdmin),
		Delete: only(Admin, TenantAdmin),
	},
	// What the pods of an app write.
	Logs: {Read: only(Roles...)},
}
