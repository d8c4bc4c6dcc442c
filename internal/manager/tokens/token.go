package tokens

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/manager/signing"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	defaultLife = 90 * 24 * time.Hour
	maxLife     = 366 * 24 * time.Hour
)

// Token is the answer about a token.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes" nullable:"false"`
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"createdBy" doc:"The id of the caller who created it, or setup; empty for a JWT."`
	Expires   time.Time `json:"expires"`
	LastUsed  time.Time `json:"lastUsed,omitzero" doc:"When it was last used, to the minute."`
	Revoked   time.Time `json:"revoked,omitzero" doc:"When it was revoked. It is not valid any more."`
}

// Created is the answer with the token itself.
type Created struct {
	Token
	Secret string `json:"token" doc:"The token. It is shown only here; the manager keeps its hash."`
}

// Operations are the operations of this package.
type Operations struct {
	Store store.Store
	// Project returns nil if the project exists and the caller may read it, and otherwise the answer to the request.
	Project func(ctx context.Context, tenant, project string) error
	// JWTs limits how many JWTs a tenant gets, see NewJWTLimit.
	JWTs *ratelimit.Limiter
	// Signing signs JWTs.
	Signing *signing.Keys
	Now     func() time.Time
}

type answer[T any] struct{ Body T }

func expiry(now time.Time, wanted *time.Time) (time.Time, error) {
	if wanted == nil {
		return now.Add(defaultLife), nil
	}
	if !wanted.After(now) || wanted.After(now.Add(maxLife)) {
		return time.Time{}, problem.New(problem.Invalid, "The expiry is invalid.", problem.Fault{Location: "body.expires", Message: "it may be within the next 366 days"})
	}
	return *wanted, nil
}

func tokenOf(t store.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Scopes: t.Scopes, Created: t.Created, CreatedBy: t.CreatedBy, Expires: t.Expires, LastUsed: t.LastUsed, Revoked: t.Revoked,
	}
}
