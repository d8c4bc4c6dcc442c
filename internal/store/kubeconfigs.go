package store

import (
	"context"
	"errors"
	"time"
)

// ErrTooManyKubeconfigs is returned for a kubeconfig of a tenant, a project or a caller that has as many as it may have.
var ErrTooManyKubeconfigs = errors.New("there are too many kubeconfigs")

// How many kubeconfigs there are, until they are deleted or swept: of a tenant; of a project, where each has a Secret, for which the quota
// has 500 by default; and of a caller in one tenant. Those of an earlier tenant of the same name do not count.
const (
	MaxKubeconfigs          = 500
	MaxKubeconfigsOfProject = 100
	MaxKubeconfigsOfCaller  = 50
)

// Kubeconfig records who may get tokens for a project in the cluster. The tokens are never stored.
type Kubeconfig struct {
	// ID is also in the name of the Secret that the tokens are bound to.
	ID, Name        string
	Tenant, Project string
	// TenantUID is the UID of that Tenant: another one of the same name has another UID.
	TenantUID string
	// Role is view, edit or admin.
	Role string
	// SecretUID is the UID of the Secret that the tokens are bound to, "" until there is one.
	SecretUID string
	// Life is how long a token was asked for.
	Life    time.Duration
	Created time.Time
	// CreatedBy is the ID of the caller, who alone gets tokens.
	CreatedBy string
	// Groups are those that the caller had when it last got a token: its role may be that of a group. nil for programs.
	Groups []string
	// Expires is when the last token ends, and the kubeconfig with it.
	Expires time.Time
}

// KubeconfigFilter says which kubeconfigs are listed: all, but for the fields that are set.
type KubeconfigFilter struct {
	Tenant, TenantUID, Project, CreatedBy string
	// After is the ID after which the list begins.
	After string
	// EndedBy lists those that expired by then, and those of whoever's token was revoked.
	EndedBy time.Time
}

// Kubeconfigs keeps who got tokens for the cluster.
type Kubeconfigs interface {
	// BeginKubeconfig keeps a kubeconfig before there is a token, so that what is made for it in the cluster is found again. It may return
	// ErrTooManyKubeconfigs.
	BeginKubeconfig(ctx context.Context, k Kubeconfig) error
	// GrantToken records that there is a token, by which Secret it is revoked, and when it ends. It returns ErrNotFound if the kubeconfig
	// was deleted meanwhile: nobody may get the token then.
	GrantToken(ctx context.Context, k Kubeconfig, e Event) error
	// GetKubeconfig returns ErrNotFound if the project has none with the ID.
	GetKubeconfig(ctx context.Context, tenant, project, id string) (Kubeconfig, error)
	// ListKubeconfigs returns up to limit, in the order of IDs.
	ListKubeconfigs(ctx context.Context, of KubeconfigFilter, limit int) ([]Kubeconfig, error)
	// DeleteKubeconfig forgets one whose tokens are not valid any more. It returns ErrNotFound if it is not there. Without an action in the
	// event, it records none.
	DeleteKubeconfig(ctx context.Context, id string, e Event) error
}
