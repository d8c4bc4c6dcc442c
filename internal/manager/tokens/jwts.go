package tokens

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
)

// NewJWTLimit returns the limit of JWTs for each tenant, in a day.
func NewJWTLimit(now func() time.Time) *ratelimit.Limiter {
	return ratelimit.New(store.MaxTokensOfDay/(24*time.Hour).Seconds(), store.MaxTokensOfDay, now)
}

type jwtInput struct {
	Tenant  string `path:"tenant" maxLength:"63"`
	Project string `path:"project" maxLength:"63"`
	Body    struct {
		Name     string `json:"name" minLength:"1" maxLength:"100" doc:"What it is for."`
		Role     string `json:"role" enum:"view,edit,deploy" doc:"What it may in the project."`
		Seconds  int    `json:"seconds,omitempty" minimum:"60" maximum:"86400" default:"3600" doc:"How long it is valid."`
		Audience string `json:"audience,omitempty" minLength:"1" maxLength:"200" doc:"Who verifies it. Default: the manager. It takes no JWT for another audience."`
	}
}

// JWT is the answer with a JWT.
type JWT struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Scope    string    `json:"scope" example:"project:acme/shop:deploy"`
	Audience string    `json:"audience"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	JWT      string    `json:"jwt" doc:"The JWT. It is shown only here, and the manager does not keep it."`
}

type (
	keySet struct {
		Keys []signing.JWK `json:"keys" nullable:"false"`
	}
	keysAnswer struct {
		CacheControl string `header:"Cache-Control"`
		Body         keySet
	}
)

func (o *Operations) createJWT(ctx context.Context, in *jwtInput) (*answer[JWT], error) {
	caller, now := auth.Of(ctx), o.Now().UTC().Truncate(time.Second)
	if err := o.Project(ctx, in.Tenant, in.Project); err != nil {
		return nil, err
	}
	if !caller.Grant.May(access.JWTs, access.Create, in.Tenant, in.Project) {
		return nil, problem.New(problem.Forbidden, "")
	}
	// Each JWT adds an event to the audit log, which is never deleted, so the limit is that of tokens.
	if wait, ok := o.JWTs.Take(in.Tenant); !ok {
		return nil, problem.New(problem.TooManyRequests, fmt.Sprintf("The tenant got %d JWTs in a day, which is all that it may have. The header Retry-After says after how many seconds it gets the next one.", store.MaxTokensOfDay)).After(wait)
	}
	scope := access.Scope{Role: access.Role("project:" + in.Body.Role), Tenant: in.Tenant, Project: in.Project}.String()
	made := JWT{ID: uuid.NewString(), Name: in.Body.Name, Scope: scope, Audience: in.Body.Audience, Created: now, Expires: now.Add(time.Duration(in.Body.Seconds) * time.Second)}
	if made.Audience == "" {
		made.Audience = o.Signing.Issuer
	}
	var err error
	made.JWT, err = o.Signing.Sign(signing.Claims{Name: made.Name, Scope: scope, Claims: jwt.Claims{
		ID: made.ID, Subject: scope, Audience: jwt.Audience{made.Audience}, IssuedAt: signing.TimeOf(now), NotBefore: signing.TimeOf(now), Expiry: signing.TimeOf(made.Expires),
	}})
	if errors.Is(err, signing.ErrNoKey) {
		return nil, problem.New(problem.Unavailable, "The manager has no key that signs JWTs: its KEY_FILE is not set, or not the one that encrypted its keys.")
	}
	if err != nil {
		return nil, err
	}
	event := caller.Event(ctx, store.Time(o.Now()), "createJWT", "jwt/"+made.ID)
	event.Tenant = in.Tenant
	if err := o.Store.RecordEvent(ctx, event); err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[JWT]{made}, nil
}

// keys answers without a limit: the keys are public and few. Clients may keep them for five minutes, because a new key is published a day before it
// signs.
func (o *Operations) keys(context.Context, *struct{}) (*keysAnswer, error) {
	return &keysAnswer{CacheControl: "public, max-age=300", Body: keySet{o.Signing.Published()}}, nil
}
