package kubeconfigs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type listInput struct {
	ProjectInput
	page.Query
}

func (o *Operations) list(ctx context.Context, in *listInput) (*answer[page.List[Kubeconfig]], error) {
	caller := auth.Of(ctx)
	if err := o.Project(ctx, in.Tenant, in.Project); err != nil {
		return nil, err
	}
	of := store.KubeconfigFilter{Tenant: in.Tenant, Project: in.Project}
	if !caller.Grant.May(access.Kubeconfigs, access.Read, in.Tenant, in.Project) {
		of.CreatedBy = caller.Token.ID
	}
	if !ofPlatform(caller) { // To others, it is as if an earlier tenant of the name had none.
		tenant, err := o.Tenant(ctx, in.Tenant)
		if err != nil {
			return nil, err
		}
		of.TenantUID = tenant.UID
	}
	read := func(after string, most int) ([]store.Kubeconfig, error) {
		of.After = after
		return o.Store.ListKubeconfigs(ctx, of, most)
	}
	list, err := page.Read(ctx, in.Query, read, answerOf, func(k Kubeconfig) string { return k.ID })
	if err != nil {
		return nil, err
	}
	return &answer[page.List[Kubeconfig]]{list}, nil
}

// find returns a kubeconfig of the caller, or any for who may read those of others. Others are not found, even where the project is gone:
// there may be tokens.
func (o *Operations) find(ctx context.Context, in *OneInput) (store.Kubeconfig, error) {
	caller := auth.Of(ctx)
	if !caller.Grant.May(access.Projects, access.Read, in.Tenant, in.Project) {
		return store.Kubeconfig{}, problem.New(problem.NotFound, "")
	}
	k, err := o.Store.GetKubeconfig(ctx, in.Tenant, in.Project, in.ID)
	if err != nil {
		return store.Kubeconfig{}, problem.FromStore(ctx, err)
	}
	if k.CreatedBy != caller.Token.ID && !caller.Grant.May(access.Kubeconfigs, access.Read, in.Tenant, in.Project) {
		return store.Kubeconfig{}, problem.New(problem.NotFound, "")
	}
	if ofPlatform(caller) { // Also those of an earlier tenant of the name.
		return k, nil
	}
	tenant, err := o.Tenant(ctx, in.Tenant)
	if err == nil && k.TenantUID != tenant.UID {
		err = problem.New(problem.NotFound, "")
	}
	return k, err
}

// remove deletes what the tokens are bound to first: once the kubeconfig is forgotten, nobody could revoke them.
func (o *Operations) remove(ctx context.Context, in *OneInput) (*struct{}, error) {
	k, err := o.find(ctx, in)
	if err != nil {
		return nil, err
	}
	if o.Cluster == nil {
		return nil, notGiven()
	}
	if k.CreatedBy != auth.Of(ctx).Token.ID && !auth.Of(ctx).Grant.May(access.Kubeconfigs, access.Delete, in.Tenant, in.Project) {
		return nil, problem.New(problem.NotFound, "")
	}
	if err := o.revoke(ctx, k); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Revoking a kubeconfig")
		return nil, problem.New(problem.Unavailable, "The API server did not delete the Secret that the tokens are bound to, so they may still be valid. Send the request again.").After(5 * time.Second)
	}
	event := o.event(ctx, "deleteKubeconfig", k, "")
	if err := o.Store.DeleteKubeconfig(ctx, k.ID, event); err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return nil, nil
}

// event records a write about a kubeconfig: with the place and the role, because the kubeconfig is forgotten, and with the ID of the token
// that was given, which the audit log of Kubernetes has.
func (o *Operations) event(ctx context.Context, action string, k store.Kubeconfig, token string) store.Event {
	object := strings.Join([]string{"kubeconfig", k.Tenant, k.Project, k.Role, k.ID}, "/")
	if token != "" {
		object += "/" + token
	}
	e := auth.Of(ctx).Event(ctx, store.Time(o.Now()), action, object)
	e.Tenant = k.Tenant
	return e
}

const (
	// swept is how many kubeconfigs a sweep reads at once.
	swept = 100
	// leeway is how long the API server accepts a token after its end.
	leeway = time.Minute
)

// Sweep removes kubeconfigs that ended, or whose owner's token was revoked, and those of people who may not have the role any more, with
// their Secrets. It goes on after one that fails, and returns the errors.
func (o *Operations) Sweep(ctx context.Context) error {
	if o.Cluster == nil {
		return nil
	}
	ended := o.each(ctx, store.KubeconfigFilter{EndedBy: store.Time(o.Now()).Add(-leeway)}, o.forget)
	return errors.Join(ended, o.each(ctx, store.KubeconfigFilter{}, o.forgetLost))
}

// each calls do with each kubeconfig, and returns all errors.
func (o *Operations) each(ctx context.Context, of store.KubeconfigFilter, do func(context.Context, store.Kubeconfig) error) (failed error) {
	for {
		some, err := o.Store.ListKubeconfigs(ctx, of, swept)
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, k := range some {
			of.After = k.ID
			failed = errors.Join(failed, do(ctx, k))
		}
		if len(some) < swept {
			return failed
		}
	}
}

// forgetLost forgets the kubeconfig of a person who lost the role. While the owners of tenants are not known, and of programs, it forgets
// none: the scopes of a token do not change.
func (o *Operations) forgetLost(ctx context.Context, k store.Kubeconfig) error {
	name, person := strings.CutPrefix(k.CreatedBy, auth.UserPrefix)
	if !person {
		return nil
	}
	grant, err := o.Grant(ctx, name, k.Groups)
	if err != nil || mayAs(grant, k.Role, k.Tenant, k.Project) {
		return nil // What is not known now, a later sweep knows.
	}
	return o.forget(ctx, k)
}

// forget removes a kubeconfig with its Secret. It stays until the Secret is gone, so that the sweep tries again.
func (o *Operations) forget(ctx context.Context, k store.Kubeconfig) error {
	err := o.revoke(ctx, k)
	if err == nil {
		err = o.Store.DeleteKubeconfig(ctx, k.ID, store.Event{})
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
