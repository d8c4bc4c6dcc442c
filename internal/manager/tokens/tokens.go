package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
)

type wanted struct {
	Name    string     `json:"name" minLength:"1" maxLength:"100" doc:"What it is for."`
	Scopes  []string   `json:"scopes" minItems:"1" maxItems:"50" nullable:"false" doc:"admin, or tenant:<tenant>:view|edit|admin and project:<tenant>/<project>:view|edit|deploy of one tenant." example:"project:acme/shop:deploy"`
	Expires *time.Time `json:"expires,omitempty" doc:"Within 366 days. Default: in 90 days."`
}

type (
	createInput struct{ Body wanted }
	oneInput    struct {
		ID string `path:"id" maxLength:"64"`
	}
)

func (o *Operations) caller(ctx context.Context, _ *struct{}) (*answer[Token], error) {
	return &answer[Token]{tokenOf(auth.Of(ctx).Token)}, nil
}

func (o *Operations) list(ctx context.Context, q *page.OfTenant) (*answer[page.List[Token]], error) {
	tenant, refused := auth.Of(ctx).Place(q.Tenant, access.Tokens)
	if refused != nil {
		return nil, refused
	}
	read := func(after string, most int) ([]store.Token, error) {
		return o.Store.ListTokens(ctx, tenant, after, most)
	}
	list, err := page.Read(ctx, q.Query, read, tokenOf, func(t Token) string { return t.ID })
	if err != nil {
		return nil, err
	}
	return &answer[page.List[Token]]{list}, nil
}

func (o *Operations) create(ctx context.Context, in *createInput) (*answer[Created], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	// Administrators create tokens of any tenant, others only of their own tenant.
	grant, err := access.Parse(in.Body.Scopes)
	if err != nil {
		return nil, problem.New(problem.Invalid, "A scope is invalid.", problem.Fault{Location: "body.scopes", Message: err.Error()})
	}
	tenant, one := grant.Tenant()
	if !one {
		return nil, problem.New(problem.Invalid, "The scopes do not fit together.", problem.Fault{Location: "body.scopes", Message: "admin stands alone, and all others are of one tenant"})
	}
	if !caller.Grant.May(access.Tokens, access.Create, tenant, "") {
		return nil, problem.New(problem.Forbidden, "")
	}
	for _, scope := range grant {
		if !caller.Grant.Covers(scope) {
			return nil, problem.New(problem.Forbidden, "A token may have only scopes that its creator administers.")
		}
	}
	expires, err := expiry(now, in.Body.Expires)
	if err != nil {
		return nil, err
	}
	secret := token.New()
	t := store.Token{ID: uuid.NewString(), Name: in.Body.Name, Hash: token.Hash(secret), Scopes: in.Body.Scopes, Tenant: tenant, Created: now, CreatedBy: caller.Token.ID, Expires: expires}
	event := caller.Event(ctx, now, "createToken", "token/"+t.ID)
	event.Tenant = tenant
	err = o.Store.CreateToken(ctx, t, event)
	if errors.Is(err, store.ErrTooMany) {
		return nil, problem.New(problem.Conflict, fmt.Sprintf("The tenant has %d valid tokens, and may have no more: revoke one that is not used.", store.MaxTokensOfTenant))
	}
	if errors.Is(err, store.ErrTooOften) {
		return nil, problem.New(problem.TooManyRequests, fmt.Sprintf("The tenant got %d tokens within a day, and gets no more until they are older. One token serves many requests.", store.MaxTokensOfDay)).After(time.Hour)
	}
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[Created]{Created{tokenOf(t), secret}}, nil
}

func (o *Operations) revoke(ctx context.Context, in *oneInput) (*struct{}, error) {
	caller := auth.Of(ctx)
	refused := problem.New(problem.Forbidden, "")
	for _, tenant := range caller.Grant.Tenants() {
		if !caller.Grant.May(access.Tokens, access.Delete, tenant, "") {
			continue
		}
		// The tokens of other tenants are not found.
		err := o.Store.RevokeToken(ctx, tenant, in.ID, caller.Event(ctx, store.Time(o.Now()), "revokeToken", "token/"+in.ID))
		if err == nil {
			return nil, nil
		}
		if refused = problem.FromStore(ctx, err); !errors.Is(err, store.ErrNotFound) {
			break
		}
	}
	return nil, refused
}
