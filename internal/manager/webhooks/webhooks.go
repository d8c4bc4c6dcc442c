// Package webhooks has the operations about webhooks: endpoints that get a message about each event.
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/ratelimit"
	"github.com/kubeop/kubeop/internal/manager/webhooksign"
	"github.com/kubeop/kubeop/internal/store"
)

// maxWrites is how many writes about webhooks a tenant makes in a day: each is an event in the audit log, which stays.
const maxWrites = 1000

// Store keeps webhooks, and requests with an Idempotency-Key.
type Store interface {
	store.Webhooks
	store.Requests
}

// Operations are the operations of this package.
type Operations struct {
	Store Store
	// Tenant returns the tenant that has a name now, and what to answer if there is none.
	Tenant func(ctx context.Context, name string) (store.TenantRef, error)
	// Check says why nothing is sent to a URL, nil if it is; a nil Check: the manager sends nothing at all.
	Check func(ctx context.Context, u *url.URL) error
	// KeyFile has the keys that encrypt secrets, "" if there are none.
	KeyFile string
	Now     func() time.Time
	// Writes limits them, see NewLimit.
	Writes *ratelimit.Limiter
}

// NewLimit returns the limit of the writes of each tenant in a day.
func NewLimit(now func() time.Time) *ratelimit.Limiter {
	return ratelimit.New(maxWrites/(24*time.Hour).Seconds(), maxWrites, now)
}

// writes refuses a write of a tenant, if webhooks are off or it wrote too often.
func (o *Operations) writes(tenant string) error {
	if o.Check == nil {
		return problem.New(problem.Conflict, "The manager sends nothing to webhooks: who installed it sets manager.webhooks.enabled of the chart.")
	}
	wait, ok := o.Writes.Take(tenant)
	if ok {
		return nil
	}
	return problem.New(problem.TooManyRequests, fmt.Sprintf("There were %d changes, tests and repetitions of the webhooks within a day. The header Retry-After says after how many seconds the next one is possible.", maxWrites)).After(wait)
}

// find returns a webhook if the caller may do this to it. Webhooks of other tenants are answered as not found, also those of an earlier
// tenant of the same name; administrators find all.
func (o *Operations) find(ctx context.Context, id string, verb access.Verb) (store.Webhook, error) {
	refused := problem.New(problem.Forbidden, "")
	grant := auth.Of(ctx).Grant
	for _, tenant := range grant.Tenants() {
		if !grant.May(access.Webhooks, verb, tenant, "") {
			continue
		}
		w, err := o.Store.GetWebhook(ctx, tenant, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			refused = problem.FromStore(ctx, err)
			continue
		case err != nil:
			return store.Webhook{}, problem.FromStore(ctx, err)
		}
		own, err := o.own(ctx, tenant)
		if err != nil {
			return store.Webhook{}, err
		}
		if own(&w) {
			return w, nil
		}
		refused = problem.New(problem.NotFound, "")
	}
	return store.Webhook{}, refused
}

// own returns which webhooks with the name of a tenant the caller may see: all, for administrators of the platform, and for others those of
// the tenant that has the name now. That is decided for each request, because the name may have another tenant before anybody disables the
// webhooks of the one before, or although nothing is sent.
func (o *Operations) own(ctx context.Context, name string) (func(*store.Webhook) bool, error) {
	if auth.Of(ctx).Grant.May(access.Webhooks, access.Read, "", "") {
		return func(*store.Webhook) bool { return true }, nil
	}
	tenant, err := o.Tenant(ctx, name)
	if isNotFound(err) {
		return func(*store.Webhook) bool { return false }, nil
	}
	return func(w *store.Webhook) bool { return w.IsOf(tenant) }, err
}

func isNotFound(err error) bool {
	var refused *problem.Problem
	return errors.As(err, &refused) && refused.Code == problem.NotFound
}

// change is find for a write.
func (o *Operations) change(ctx context.Context, id string) (store.Webhook, error) {
	w, err := o.find(ctx, id, access.Update)
	if err == nil {
		err = o.writes(w.Tenant)
	}
	return w, err
}

func (o *Operations) event(ctx context.Context, action string, w store.Webhook) store.Event {
	e := auth.Of(ctx).Event(ctx, store.Time(o.Now()), action, "webhook/"+w.ID)
	e.Tenant = w.Tenant
	return e
}

// secretID is the id of a secret in the store, by that of the request that makes it.
func secretID(webhook, request string) string { return webhook + "/" + request }

// newSecret makes a secret.
func (o *Operations) newSecret(ctx context.Context, id string) (secret string, sealed store.Sealed, err error) {
	if o.KeyFile == "" {
		return "", store.Sealed{}, problem.New(problem.Unavailable, "The manager has no keys that encrypt the secrets of webhooks: who installed it sets manager.keySecret of the chart.")
	}
	keys, err := kms.Read(o.KeyFile)
	if err != nil {
		return "", store.Sealed{}, unreadable(ctx, err)
	}
	secret = webhooksign.NewSecret()
	place := kms.Place{Table: store.KindWebhookSecret, ID: id}
	made, err := keys.Seal(place, []byte(secret))
	if err != nil {
		return "", store.Sealed{}, err
	}
	return secret, store.Sealed{Kind: place.Table, ID: place.ID, Key: made.Key, Data: made.Data}, nil
}
