package tokens

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/token"
	"github.com/kubeop/kubeop/internal/store"
)

// codeLife is how long the code for the first administrator is valid. A restart offers a new one.
const codeLife = time.Hour

// bySetup is recorded as the creator of the token of the first administrator.
const bySetup = "setup"

type claimInput struct {
	Body struct {
		Code    string     `json:"code" maxLength:"100" doc:"The code that the manager printed when it started."`
		Name    string     `json:"name" minLength:"1" maxLength:"100" doc:"What the token is for."`
		Expires *time.Time `json:"expires,omitempty" doc:"Within 366 days. Default: in 90 days."`
	}
}

// OfferSetup makes a code for the first administrator, and invalidates the previous one. It returns "" if a token with the scope admin is valid. Who
// lost all of these tokens, or let them expire, restarts the manager.
func (o *Operations) OfferSetup(ctx context.Context) (code string, expires time.Time, err error) {
	code, now := token.NewCode(), store.Time(o.Now())
	expires = now.Add(codeLife)
	err = o.Store.OfferSetup(ctx, token.Hash(code), now, expires)
	if errors.Is(err, store.ErrAdministrated) {
		return "", time.Time{}, nil
	}
	return code, expires, err
}

func (o *Operations) claim(ctx context.Context, in *claimInput) (*answer[Created], error) {
	now := store.Time(o.Now())
	expires, err := expiry(now, in.Body.Expires)
	if err != nil {
		return nil, err
	}
	secret := token.New()
	t := store.Token{
		ID: uuid.NewString(), Name: in.Body.Name, Hash: token.Hash(secret), Scopes: []string{"admin"}, Created: now, CreatedBy: bySetup, Expires: expires,
	}
	event := auth.Caller{Token: store.Token{ID: bySetup}}.Event(ctx, now, "claimSetup", "token/"+t.ID)
	err = o.Store.ClaimSetup(ctx, token.Hash(in.Body.Code), t, event)
	switch {
	case errors.Is(err, store.ErrAdministrated):
		return nil, problem.New(problem.Conflict, "There is an administrator. Administrators create further tokens by POST /v1/tokens.")
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.New(problem.Unauthenticated, "The code is unknown or expired. The manager prints a new one when it is restarted.")
	case err != nil:
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[Created]{Created{tokenOf(t), secret}}, nil
}
