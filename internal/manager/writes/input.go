package writes

import "github.com/kubeop/kubeop/internal/manager/etag"

// The parameters in paths. Names that no object can have are refused later, with the other problems of a file.
type (
	// TenantPath names a tenant.
	TenantPath struct {
		Tenant string `path:"tenant" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	}
	// ProjectPath names a project.
	ProjectPath struct {
		TenantPath
		Project string `path:"project" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	}
	// AppPath names an app.
	AppPath struct {
		ProjectPath
		App string `path:"app" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	}
)

func (p TenantPath) object() Object  { return Object{Tenant: p.Tenant} }
func (p ProjectPath) object() Object { return Object{Tenant: p.Tenant, Project: p.Project} }
func (p AppPath) object() Object     { return Object{Tenant: p.Tenant, Project: p.Project, App: p.App} }

// The parts of requests beside the path.
type (
	// Dry is the parameter of a request that supports dry runs.
	Dry struct {
		DryRun bool `query:"dryRun" doc:"Answer 200 with the plan of the commit, and commit nothing."`
	}
	// Keyed is the header of a request that can be sent again.
	Keyed struct {
		Dry
		IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]*$" doc:"A text that is unique to the request, such as a UUID. If the request is sent again with the same text and body, it gets the same answer."`
	}
	// NewObject is the body that creates an object.
	NewObject struct {
		Name string `json:"name" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" example:"web"`
		Spec Spec   `json:"spec,omitempty" doc:"As in the file: docs/spec has the fields."`
	}
	// ObjectSpec is the spec of an object.
	ObjectSpec struct {
		Spec Spec `json:"spec" nullable:"false" doc:"As in the file: docs/spec has the fields."`
	}
	// Commit is the hash of a commit.
	Commit struct {
		Commit string `path:"commit" pattern:"^[0-9a-f]{40}$"`
	}
)

func (m Matched) change(how string, of Object, spec ObjectSpec) wanted {
	return wanted{Change: Change{How: how, Of: of, Spec: spec.Spec, DryRun: m.DryRun, Match: m.etags}}
}

func (k Keyed) create(of Object, body NewObject) wanted {
	return wanted{Change: Change{How: Create, Of: of, Spec: body.Spec, DryRun: k.DryRun}, key: k.IdempotencyKey}
}

type (
	createTenant struct {
		Keyed
		Body NewObject
	}
	createProject struct {
		TenantPath
		Keyed
		Body NewObject
	}
	createApp struct {
		ProjectPath
		Keyed
		Body NewObject
	}
	replaceTenant struct {
		TenantPath
		Matched
		Body ObjectSpec
	}
	replaceProject struct {
		ProjectPath
		Matched
		Body ObjectSpec
	}
	replaceApp struct {
		AppPath
		Matched
		Body ObjectSpec
	}
	// A merge patch has its own media type, and is also accepted as plain JSON.
	patchTenant struct {
		TenantPath
		Matched
		Body ObjectSpec
	}
	patchProject struct {
		ProjectPath
		Matched
		Body ObjectSpec
	}
	patchApp struct {
		AppPath
		Matched
		Body ObjectSpec
	}
	deleteTenant struct {
		TenantPath
		Matched
	}
	deleteProject struct {
		ProjectPath
		Matched
	}
	deleteApp struct {
		AppPath
		Matched
	}
	fileOfTenant struct {
		TenantPath
		etag.Known
	}
	fileOfProject struct {
		ProjectPath
		etag.Known
	}
	fileOfApp struct {
		AppPath
		etag.Known
	}
	commitOfTenant struct {
		TenantPath
		Commit
	}
	commitOfProject struct {
		ProjectPath
		Commit
	}
	commitOfApp struct {
		AppPath
		Commit
	}
)

func (in *createTenant) request() wanted { return in.create(Object{Tenant: in.Body.Name}, in.Body) }
func (in *createProject) request() wanted {
	return in.create(Object{Tenant: in.Tenant, Project: in.Body.Name}, in.Body)
}
func (in *createApp) request() wanted {
	return in.create(Object{Tenant: in.Tenant, Project: in.Project, App: in.Body.Name}, in.Body)
}
func (in *replaceTenant) request() wanted  { return in.change(Replace, in.object(), in.Body) }
func (in *replaceProject) request() wanted { return in.change(Replace, in.object(), in.Body) }
func (in *replaceApp) request() wanted     { return in.change(Replace, in.object(), in.Body) }
func (in *patchTenant) request() wanted    { return in.change(Patch, in.object(), in.Body) }
func (in *patchProject) request() wanted   { return in.change(Patch, in.object(), in.Body) }
func (in *patchApp) request() wanted       { return in.change(Patch, in.object(), in.Body) }
func (in *deleteTenant) request() wanted   { return in.change(Delete, in.object(), ObjectSpec{}) }
func (in *deleteProject) request() wanted  { return in.change(Delete, in.object(), ObjectSpec{}) }
func (in *deleteApp) request() wanted      { return in.change(Delete, in.object(), ObjectSpec{}) }
func (in *fileOfTenant) request() wanted {
	return wanted{Change: Change{Of: in.object()}, known: in.Known}
}
func (in *fileOfProject) request() wanted {
	return wanted{Change: Change{Of: in.object()}, known: in.Known}
}
func (in *fileOfApp) request() wanted {
	return wanted{Change: Change{Of: in.object()}, known: in.Known}
}
func (in *commitOfTenant) request() wanted {
	return wanted{Change: Change{Of: in.object()}, commit: in.Commit.Commit}
}
func (in *commitOfProject) request() wanted {
	return wanted{Change: Change{Of: in.object()}, commit: in.Commit.Commit}
}
func (in *commitOfApp) request() wanted {
	return wanted{Change: Change{Of: in.object()}, commit: in.Commit.Commit}
}
