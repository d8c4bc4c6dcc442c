// Package store is the database of the manager: tokens, the code for the first administrator, encrypted keys, the answers for Idempotency-Keys, the
// audit log, who got kubeconfigs, what apps used, who pays for it, and invoices. The specs of tenants, projects and apps are never in it, because Git and the cluster have them.
package store

import (
	"context"
	"errors"
	"time"
)

// Errors that callers compare with.
var (
	ErrNotFound = errors.New("the store has no such record")
	// ErrAdministrated is returned by Setup if a token with the scope admin is valid.
	ErrAdministrated = errors.New("there is a token with the scope admin")
	// ErrTooMany is returned if a tenant already has MaxTokensOfTenant valid tokens.
	ErrTooMany = errors.New("the tenant has too many valid tokens")
	// ErrTooOften is returned if a tenant got MaxTokensOfDay tokens in the last day.
	ErrTooOften = errors.New("the tenant got too many tokens in a day")
	// ErrMeasured is returned for amounts of meters that were measured in their cluster and hour.
	ErrMeasured = errors.New("this was measured in the cluster itself")
)

// The limits of what callers can store: the valid tokens of a tenant, the tokens that a tenant gets in a day, even if they are revoked at once, and
// the unanswered requests of a token.
const (
	MaxTokensOfTenant = 500
	MaxTokensOfDay    = 1000
	MaxUnanswered     = 1000
)

// KeepEnded is how long a token is kept after it expired or was revoked. If it wrote nothing, the events of its creation and revocation are kept
// equally long.
const KeepEnded = 30 * 24 * time.Hour

// Time returns a time as the store keeps it, in UTC and to the microsecond, so that the answer to a write has the times that a list will have.
func Time(of time.Time) time.Time { return of.UTC().Truncate(time.Microsecond) }

// recordTimeout is how long the store may take for what goes on after the caller may have disconnected.
const recordTimeout = 5 * time.Second

// Detached returns a context for reads and writes that must not end with the request, because its caller disconnected. It ends after five seconds.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
}

// Token is the record of a token of a program. The token itself is never stored.
type Token struct {
	ID   string
	Name string
	// Hash is the SHA-256 of the token.
	Hash   []byte
	Scopes []string
	// Tenant is the tenant of all its scopes, "" for the scope admin.
	Tenant  string
	Created time.Time
	// CreatedBy is the ID of the token that created this one, or "setup" for the token of the first administrator.
	CreatedBy string
	Expires   time.Time
	// LastUsed and Revoked are zero if that never happened.
	LastUsed time.Time
	Revoked  time.Time
}

// Event is a record of a write, in the audit log.
type Event struct {
	// ID is set by the store. A later event has a greater ID.
	ID int64
	At time.Time
	// Actor is the ID of the caller's token, or "setup".
	Actor string
	// Action is the operation, such as createToken. Object is the object of the write.
	Action string
	Object string
	// Tenant is the tenant of the object, "" if it has none.
	Tenant    string
	Address   string
	RequestID string
	// Commit is the hash of the commit that the write made, "" if it made none.
	Commit string
}

// Request is a request with an Idempotency-Key, and its answer.
type Request struct {
	// Caller is the ID of the token of the caller. Keys of different callers are independent.
	Caller, Key string
	// Hash is derived from the content of the request: the same key with another hash is a mistake of the caller.
	Hash    []byte
	Created time.Time
	// Expires is when the key is forgotten.
	Expires time.Time
	// Answer is nil until the request is done.
	Answer []byte
}

// Requests stores requests with an Idempotency-Key.
type Requests interface {
	// BeginRequest stores a request, unless there is one with the same key that has not expired at r.Created. It returns the stored one. If the caller
	// has more than MaxUnanswered requests without an answer, it deletes the oldest of them.
	BeginRequest(ctx context.Context, r Request) (Request, error)
	// FinishRequest stores the answer to a request and its event, in one transaction. If the request already has an answer, it changes nothing.
	FinishRequest(ctx context.Context, r Request, e Event) error
	// ForgetRequest deletes a request that has no answer, so that its key can be used again.
	ForgetRequest(ctx context.Context, r Request) error
}

// Tokens stores tokens. Each write records its event in the same transaction.
type Tokens interface {
	// CreateToken returns ErrTooMany if the tenant has too many tokens that are valid at t.Created, and ErrTooOften if it got too many in the day
	// before.
	CreateToken(ctx context.Context, t Token, e Event) error
	// TokenByHash also returns a token that expired or was revoked. It returns ErrNotFound if there is none.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// ListTokens returns up to limit tokens whose IDs are greater than after, ordered by ID. It lists the tokens of all tenants if tenant is "".
	ListTokens(ctx context.Context, tenant, after string, limit int) ([]Token, error)
	// RevokeToken revokes a token of a tenant, or of any tenant if tenant is "". It returns ErrNotFound if there is no such token, and records nothing
	// if the token was revoked before.
	RevokeToken(ctx context.Context, tenant, id string, e Event) error
	// UseToken records when a token was last used.
	UseToken(ctx context.Context, id string, at time.Time) error
}

// Setup stores the hash of the one-time code with which the first administrator gets a token.
type Setup interface {
	// OfferSetup replaces the code. It returns ErrAdministrated while a token with the scope admin is valid at now.
	OfferSetup(ctx context.Context, hash []byte, now, expires time.Time) error
	// ClaimSetup creates a token and deletes the code, in one transaction. It returns ErrNotFound if the code is wrong or expired at t.Created, and
	// ErrAdministrated if a token with the scope admin is valid then.
	ClaimSetup(ctx context.Context, hash []byte, t Token, e Event) error
}

// Audit is the audit log. Writes to the store record their events themselves; RecordEvent is for writes elsewhere.
type Audit interface {
	RecordEvent(ctx context.Context, e Event) error
	// ListEvents returns up to limit events whose IDs are less than before, the newest first; with before 0 it begins with the newest. It lists the
	// events of all tenants if tenant is "".
	ListEvents(ctx context.Context, tenant string, before int64, limit int) ([]Event, error)
}

// Credentials stores tokens and kubeconfigs.
type Credentials interface {
	Tokens
	Kubeconfigs
}

// Store is a database.
type Store interface {
	Credentials
	Setup
	Records
	Keys
	Database
}

// Records stores requests, events, what webhooks need, what apps used, and invoices.
type Records interface {
	Requests
	Audit
	Sweeper
	Webhooks
	Costs
}

// Costs stores what apps used, and what tenants pay for it.
type Costs interface {
	Usage
	Invoices
	Payers
	Alerts
}

// Sweeper deletes what nobody needs any more.
type Sweeper interface {
	// Sweep deletes tokens that ended more than KeepEnded ago, with the events about them. It deletes requests that expired, requests of tokens
	// that ended, usage and alerts that are older than KeepUsage, and payers that are gone for longer than that. Events about tenants, projects and apps stay.
	Sweep(ctx context.Context, now time.Time) error
}

// Database is the database behind a Store.
type Database interface {
	// Lead calls do unless another manager has the lead of this name, and reports whether it called it. The context of do ends if the lead is lost,
	// such as because the database does not answer. If only one manager can use the database, it always leads.
	Lead(ctx context.Context, name string, do func(context.Context) error) (led bool, err error)
	Ping(ctx context.Context) error
	Close() error
}
