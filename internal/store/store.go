// Package store is what the manager keeps in a database: tokens, the code for the first administrator, encrypted keys, the answers for Idempotency-Keys, and the audit log. Tenants,
// projects and apps are never in it: Git and the cluster have them.
package store

import (
	"context"
	"errors"
	"time"
)

// Errors that callers compare with.
var (
	ErrNotFound = errors.New("the store has no such record")
	// ErrAdministrated is returned by the functions for the first administrator while there is one.
	ErrAdministrated = errors.New("there is a token with the scope admin")
	// ErrTooMany is returned for a token of a tenant that has MaxTokensOfTenant valid ones.
	ErrTooMany = errors.New("the tenant has too many valid tokens")
	// ErrTooOften is returned for a token of a tenant that got MaxTokensOfDay in the day before.
	ErrTooOften = errors.New("the tenant got too many tokens in a day")
)

// The bounds of what callers can make a store keep: how many valid tokens a tenant has, how many are made for it in a day, also if they are revoked at once, and how many
// requests of a token are kept that have no answer.
const (
	MaxTokensOfTenant = 500
	MaxTokensOfDay    = 1000
	MaxUnanswered     = 1000
)

// KeepEnded is how long a token is kept after it expired or was revoked, and the events of its creation and revocation if it wrote nothing.
const KeepEnded = 30 * 24 * time.Hour

// Token is a token of a program. The token itself is never stored.
type Token struct {
	ID   string
	Name string
	// Hash is the SHA-256 of the token.
	Hash   []byte
	Scopes []string
	// Tenant is the tenant that all scopes are of, "" for the scope admin.
	Tenant  string
	Created time.Time
	// CreatedBy is the ID of the token that created this one, "setup" for that of the first administrator.
	CreatedBy string
	Expires   time.Time
	// LastUsed and Revoked are zero if it never was.
	LastUsed time.Time
	Revoked  time.Time
}

// Event is a record of the audit log: a write that was made.
type Event struct {
	// ID is set by the store, and increases with each event.
	ID int64
	At time.Time
	// Actor is the ID of the caller's token, or "setup".
	Actor string
	// Action is the operation, such as createToken. Object is what it was made on.
	Action string
	Object string
	// Tenant is the tenant of the object, "" if it has none.
	Tenant    string
	Address   string
	RequestID string
	// Commit is the hash of the commit that the write made, "" if it made none.
	Commit string
}

// Request is a request with an Idempotency-Key, and what it was answered.
type Request struct {
	// Caller is the ID of the caller's token. Each has keys of its own.
	Caller, Key string
	// Hash is made of what is requested: the same key with another hash is a mistake of the caller.
	Hash    []byte
	Created time.Time
	// Expires is when the key is forgotten.
	Expires time.Time
	// Answer is nil until the request is done.
	Answer []byte
}

// Requests keeps requests with an Idempotency-Key.
type Requests interface {
	// BeginRequest keeps a request, unless there is one with its key that has not expired at r.Created. It returns the one that is kept. Of those of its caller that have no
	// answer it forgets the oldest beyond MaxUnanswered.
	BeginRequest(ctx context.Context, r Request) (Request, error)
	// FinishRequest keeps the answer to a request, and its event, in one transaction. If there is an answer, it keeps that, and records nothing.
	FinishRequest(ctx context.Context, r Request, e Event) error
	// ForgetRequest forgets a request that has no answer, so that its key is free.
	ForgetRequest(ctx context.Context, r Request) error
}

// Tokens keeps tokens. Each write records its event in the same transaction.
type Tokens interface {
	// CreateToken returns ErrTooMany if the tenant may have no more that are valid at t.Created, and ErrTooOften if it may get no more in the day before.
	CreateToken(ctx context.Context, t Token, e Event) error
	// TokenByHash returns ErrNotFound if there is none. It also returns those that expired or were revoked.
	TokenByHash(ctx context.Context, hash []byte) (Token, error)
	// ListTokens returns up to limit tokens whose IDs are greater than after, in the order of IDs. of "" lists those of all tenants.
	ListTokens(ctx context.Context, of, after string, limit int) ([]Token, error)
	// RevokeToken revokes a token, of a tenant unless of is "". It returns ErrNotFound if there is no such token, and records nothing if it was
	// revoked before.
	RevokeToken(ctx context.Context, of, id string, e Event) error
	// UseToken records when a token was last used.
	UseToken(ctx context.Context, id string, at time.Time) error
}

// Setup keeps the hash of the one-time code by which the first administrator gets a token.
type Setup interface {
	// OfferSetup replaces the code. It returns ErrAdministrated while a token with the scope admin is valid at now.
	OfferSetup(ctx context.Context, hash []byte, now, expires time.Time) error
	// ClaimSetup creates a token and forgets the code, in one transaction. It returns ErrNotFound if the code is another one or expired at
	// t.Created, and ErrAdministrated as OfferSetup.
	ClaimSetup(ctx context.Context, hash []byte, t Token, e Event) error
}

// Audit is the audit log. What is kept here is recorded with its write; RecordEvent is for writes that are made elsewhere.
type Audit interface {
	RecordEvent(ctx context.Context, e Event) error
	// ListEvents returns up to limit events whose IDs are less than before, the newest first; before 0 begins with the newest. of "" lists those of
	// all tenants.
	ListEvents(ctx context.Context, of string, before int64, limit int) ([]Event, error)
}

// Store is a database.
type Store interface {
	Tokens
	Setup
	Records
	Keys
	Database
}

// Records are what is kept of requests and what happens.
type Records interface {
	Requests
	Audit
	Sweeper
	Webhooks
}

// Sweeper removes what is of no use any more.
type Sweeper interface {
	// Sweep removes tokens that ended KeepEnded before, with the events about them, and requests that expired or whose caller's token ended. Events about tenants, projects and
	// apps stay.
	Sweep(ctx context.Context, now time.Time) error
}

// Leads are who of several managers on one database does what only one should do at a time.
type Leads interface {
	// Lead runs do unless another one leads in what is named so, and reports whether it did. The context of do ends when the lead is lost, as when the database does not answer. In a
	// database of one manager, that one always leads.
	Lead(ctx context.Context, name string, do func(context.Context) error) (led bool, err error)
}

// Database is where a Store keeps what it has.
type Database interface {
	Leads
	Ping(ctx context.Context) error
	Close() error
}
