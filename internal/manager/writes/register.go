package writes

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	tenant := kind{api, o, "Tenant", "/v1/tenants", "/{tenant}"}
	register[createTenant](tenant, http.MethodPost, "create", "A new tenant")
	register[replaceTenant](tenant, http.MethodPut, "replace", "Another spec for a tenant")
	register[patchTenant](tenant, http.MethodPatch, "patch", "Change fields of a tenant")
	register[deleteTenant](tenant, http.MethodDelete, "delete", "The deletion of a tenant, in Git")
	registerReads[fileOfTenant, commitOfTenant](tenant)

	project := kind{api, o, "Project", "/v1/projects/{tenant}", "/{project}"}
	register[createProject](project, http.MethodPost, "create", "A new project")
	register[replaceProject](project, http.MethodPut, "replace", "Another spec for a project")
	register[patchProject](project, http.MethodPatch, "patch", "Change fields of a project")
	register[deleteProject](project, http.MethodDelete, "delete", "The deletion of a project, in Git")
	registerReads[fileOfProject, commitOfProject](project)

	app := kind{api, o, "App", "/v1/apps/{tenant}/{project}", "/{app}"}
	register[createApp](app, http.MethodPost, "create", "A new app")
	register[replaceApp](app, http.MethodPut, "replace", "Another spec for an app")
	register[patchApp](app, http.MethodPatch, "patch", "Change fields of an app")
	register[deleteApp](app, http.MethodDelete, "delete", "The deletion of an app, in Git")
	registerReads[fileOfApp, commitOfApp](app)
	registerRollback(app)
}

// requesting is a body that can return what it requests.
type requesting[In any] interface {
	*In
	request() wanted
}

var notes = map[string]string{
	"create":  "The file is written as `kubeop create` writes it. With an Idempotency-Key, a request that is sent again has the same answer, and makes no second commit.",
	"replace": "Fields that stay as they are keep their comments and their place. What the body does not have is deleted from the spec.",
	"patch":   "The body is a merge patch (RFC 7396): null deletes a field. Everything else in the file stays as it is, with its comments.",
	"delete": "The folder of the object is deleted in Git. What the cluster does is decided there: a commit that deletes a tenant, a project or volumes with data waits until a person confirms it, " +
		"and is reported as Held until then.",
}

func register[In any, P requesting[In]](k kind, method, verb, summary string) {
	path := k.parent
	if method != http.MethodPost {
		path += k.one
	}
	op := k.operation(verb+k.name, method, path, summary, http.StatusForbidden, http.StatusConflict)
	op.DefaultStatus = http.StatusAccepted
	op.Middlewares = huma.Middlewares{k.o.limit(k.api)}
	op.Description = "It is a commit in the repository that declares the object, by the caller, checked before as kubeop validate checks it. " + notes[verb]
	k.mayDryRun(&op)
	huma.Register(k.api, op, func(ctx context.Context, in *In) (*accepted, error) { return k.answer(ctx, P(in).request()) })
}

func registerReads[FileIn, CommitIn any, F requesting[FileIn], C requesting[CommitIn]](k kind) {
	file := k.operation("get"+k.name+"File", http.MethodGet, k.parent+k.one+"/file", "The file that declares it, in the newest commit", http.StatusForbidden)
	file.Description = "Who may change the object may read it. It is asked of the Git server. With its ETag in If-Match, a change is made only if nobody changed the file meanwhile."
	file.Responses = map[string]*huma.Response{"304": {Description: "The caller has the answer already, see If-None-Match."}}
	huma.Register(k.api, file, func(ctx context.Context, in *FileIn) (*fileAnswer, error) { return k.o.file(ctx, F(in).request()) })
	commit := k.operation("get"+k.name+"Commit", http.MethodGet, k.parent+k.one+"/commits/{commit}", "What became of a commit of it")
	huma.Register(k.api, commit, func(ctx context.Context, in *CommitIn) (*commitAnswer, error) {
		return k.o.commit(ctx, C(in).request())
	})
}
