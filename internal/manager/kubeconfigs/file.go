package kubeconfigs

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// maxContexts is how many contexts one kubeconfig has.
const maxContexts = 1000

// KubeconfigFile is a kubeconfig that gets its tokens by the program kubeop.
type KubeconfigFile struct {
	Contexts []string `json:"contexts" nullable:"false" doc:"The names of the contexts: tenant/project."`
	File     string   `json:"kubeconfig" doc:"The kubeconfig, in YAML. It has no secret."`
}

type fileInput struct {
	Tenant string `query:"tenant" maxLength:"63" doc:"Only the projects of this tenant."`
	Role   string `query:"role" enum:"view,edit,admin" doc:"The role in each project. Default: the highest that the caller may have there. Projects in which it may not are left out."`
}

func (o *Operations) file(ctx context.Context, in *fileInput) (*answer[KubeconfigFile], error) {
	if o.Cluster == nil {
		return nil, notGiven()
	}
	all, err := o.entries(ctx, in)
	if err != nil {
		return nil, err
	}
	made := KubeconfigFile{Contexts: []string{}}
	for _, e := range all {
		made.Contexts = append(made.Contexts, e.name())
	}
	made.File, err = o.Server.write(all, o.Server.user, func(e entry) v1.AuthInfo {
		return v1.AuthInfo{Exec: &v1.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "kubeop", Args: []string{"token", e.name(), "--role", e.role, "--server", o.Manager}, InteractiveMode: v1.NeverExecInteractiveMode,
			InstallHint: "kubeop is the command line of the platform. It needs KUBEOP_TOKEN, or KUBEOP_TOKEN_FILE, and KUBEOP_SERVER_CA for a manager with a private certificate authority.",
		}}
	})
	return &answer[KubeconfigFile]{made}, err
}

// entries returns the projects in which the caller may act, with the role.
func (o *Operations) entries(ctx context.Context, in *fileInput) (all []entry, err error) {
	grant := auth.Of(ctx).Grant
	tenants, err := o.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		if in.Tenant != "" && tenant != in.Tenant || !grant.Knows(tenant) {
			continue
		}
		projects, err := o.Projects(ctx, tenant)
		if err != nil {
			return nil, err
		}
		for _, project := range projects {
			role := roleIn(grant, in.Role, tenant, project)
			if role == "" || !grant.May(access.Projects, access.Read, tenant, project) {
				continue
			}
			if len(all) == maxContexts {
				return nil, problem.New(problem.BadRequest, fmt.Sprintf("The caller has more than %d projects.", maxContexts), problem.Fault{Location: "query.tenant", Message: "has to name one tenant"})
			}
			all = append(all, entry{tenant, project, role})
		}
	}
	return all, nil
}

// roleIn returns the role that is wanted, or else the highest that somebody with these rights may have; "" if it may not.
func roleIn(grant access.Grant, wanted, tenant, project string) string {
	for _, r := range slices.Backward(roles) {
		if (wanted == "" || wanted == r.name) && mayAs(grant, r.name, tenant, project) {
			return r.name
		}
	}
	return ""
}
