// Package kubeconfigs has the operations by which people get kubeconfigs: tokens of service accounts that the operator makes in each
// project, bound to a Secret that is deleted to revoke them.
package kubeconfigs

import (
	"context"
	"strings"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/store"
)

// The bounds of a token's life. Kubernetes gives none for less than 10 minutes, and the policy kubeop-platform-token allows none for more than a day.
const (
	minLife     = 10 * time.Minute
	maxLife     = 24 * time.Hour
	defaultLife = time.Hour
)

// How many tokens a tenant, and a caller in one tenant, get in a day. Each is an event, which stays.
const (
	maxTokens         = 5000
	maxTokensOfCaller = 1000
)

const (
	// accountPrefix begins the names of the service accounts that the operator makes in each project, as delivery/access has them; the role follows.
	accountPrefix = "kubeop-access-"
	// secretPrefix begins the names of the Secrets that tokens are bound to; the id of the kubeconfig follows. secretType is their type.
	// The policy kubeop-kubeconfig-secret knows both.
	secretPrefix = "kubeop-kubeconfig-"
	secretType   = "paas.kubeop.io/kubeconfig"
)

// Cluster is where the tokens are valid.
type Cluster interface {
	corev1client.SecretsGetter
	corev1client.ServiceAccountsGetter
}

// Server is where people reach the API server.
type Server struct {
	// URL has no default: what the manager itself reaches is an address in the cluster.
	URL string
	// CA is the authority of its certificate in PEM; nil for a public one.
	CA []byte
}

// Operations are those of this package.
type Operations struct {
	// Cluster is nil if people get no kubeconfigs.
	Cluster Cluster
	Server  Server
	// Manager is the URL of the management API, which the program kubeop asks for tokens.
	Manager string
	Store   store.Store
	// Project returns what to answer if there is no such project for the caller, and nil if there is. Projects returns the names of those
	// of a tenant that are not being deleted, and Tenants those of all.
	Project func(ctx context.Context, tenant, project string) error
	// Tenant returns the tenant that has a name now, and what to answer if there is none.
	Tenant   func(ctx context.Context, name string) (store.TenantRef, error)
	Tenants  func(ctx context.Context) ([]string, error)
	Projects func(ctx context.Context, tenant string) ([]string, error)
	// Grant returns the rights that a person has now, by its name and its groups, and an error if they are not known.
	Grant func(ctx context.Context, name string, groups []string) (access.Grant, error)
	Now   func() time.Time
	// Tokens limits them, see NewLimits.
	Tokens Limits
}

// Limits limit how many tokens are given.
type Limits struct{ OfTenant, OfCaller *ratelimit.Limiter }

// NewLimits returns the limits of the tokens that each tenant, and each caller, gets in a day.
func NewLimits(now func() time.Time) Limits {
	perDay := func(most int) *ratelimit.Limiter {
		return ratelimit.New(float64(most)/(24*time.Hour).Seconds(), most, now)
	}
	return Limits{OfTenant: perDay(maxTokens), OfCaller: perDay(maxTokensOfCaller)}
}

// roles are the roles in the order of what they may, with the verb that the caller needs for each.
var roles = []struct {
	name string
	verb access.Verb
}{{"view", access.ActAsView}, {"edit", access.ActAsEdit}, {"admin", access.ActAsAdmin}}

// mayAs reports whether somebody with these rights may act with a role in a project.
func mayAs(grant access.Grant, role, tenant, project string) bool {
	for _, r := range roles {
		if r.name == role {
			return grant.May(access.Kubeconfigs, r.verb, tenant, project)
		}
	}
	return false
}

// isPerson reports whether the caller signed in at an issuer. Others have a token of their own.
func isPerson(caller auth.Caller) bool { return strings.HasPrefix(caller.Token.ID, auth.UserPrefix) }

// ofPlatform reports whether the caller is an administrator of the platform.
func ofPlatform(caller auth.Caller) bool {
	return caller.Grant.May(access.Kubeconfigs, access.Read, "", "")
}

// ProjectInput names a project.
type ProjectInput struct {
	Tenant  string `path:"tenant" maxLength:"63"`
	Project string `path:"project" maxLength:"63"`
}

// OneInput names a kubeconfig of a project.
type OneInput struct {
	ProjectInput
	ID string `path:"id" maxLength:"64"`
}

type answer[T any] struct{ Body T }

// Kubeconfig is the answer about a kubeconfig, without its credentials.
type Kubeconfig struct {
	ID        string    `json:"id"`
	Name      string    `json:"name,omitempty"`
	Tenant    string    `json:"tenant"`
	Project   string    `json:"project"`
	Role      string    `json:"role" enum:"view,edit,admin"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"createdBy" doc:"The id of the caller who got it."`
	Expires   time.Time `json:"expires" doc:"When its last token ends."`
}

func answerOf(k store.Kubeconfig) Kubeconfig {
	return Kubeconfig{ID: k.ID, Name: k.Name, Tenant: k.Tenant, Project: k.Project, Role: k.Role, Created: k.Created, CreatedBy: k.CreatedBy, Expires: k.Expires}
}

func notGiven() error {
	return problem.New(problem.Conflict, "The manager gives no kubeconfigs: an administrator of the cluster sets manager.kubeconfigs.enabled in the chart's values.")
}

func namespaceOf(k store.Kubeconfig) string { return v1alpha1.ProjectNamespace(k.Tenant, k.Project) }
