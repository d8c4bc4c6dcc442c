package webhooks

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// Webhook is a webhook without its secret.
type Webhook struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Tenant   string   `json:"tenant,omitempty" doc:"The tenant whose messages it gets. It is not there for a webhook of the platform, which gets those of all."`
	URL      string   `json:"url"`
	Types    []string `json:"types" nullable:"false" example:"app.*"`
	Disabled bool     `json:"disabled,omitempty" doc:"Nothing is sent. What waits for it, waits on."`
	// DisabledReason is there only if the manager did it.
	DisabledReason string    `json:"disabledReason,omitempty" doc:"Why the manager disabled it: it answered 410 Gone, or a tenant of this name was created anew. A PATCH with disabled: false enables it."`
	Created        time.Time `json:"created"`
	CreatedBy      string    `json:"createdBy" doc:"The id of the caller who created it."`
	// PreviousUntil is there while two secrets sign.
	PreviousUntil *time.Time `json:"previousUntil,omitempty" doc:"Until when the secret before signs too."`
}

// WebhookSecret is the answer with the secret itself.
type WebhookSecret struct {
	Webhook
	Secret string `json:"secret" doc:"The secret that signs messages. It is shown only here; the manager keeps it encrypted."`
}

// WebhookDelivery is a message for a webhook, and whether the webhook took it.
type WebhookDelivery struct {
	ID       int64     `json:"id" doc:"The id that redeliverToWebhook needs."`
	Message  string    `json:"message" doc:"The header webhook-id. It is the same each time that the message is sent." example:"msg_0123456789abcdef0123456789abcdef"`
	Type     string    `json:"type" example:"app.failed"`
	Tenant   string    `json:"tenant,omitempty"`
	Object   string    `json:"object" example:"app/acme/shop/web"`
	State    string    `json:"state" enum:"waiting,delivered,parked" doc:"parked: it is not sent any more, unless somebody asks for it."`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since" doc:"Since when it is sent."`
	// Next is zero in the store for a message that waits for an older one.
	Next   *time.Time `json:"next,omitempty" doc:"The time of the next attempt. It is absent while the message waits for an older one about the same object."`
	Tried  *time.Time `json:"tried,omitempty" doc:"When it was sent last."`
	Status int        `json:"status,omitempty" doc:"The status of the last answer."`
	Answer string     `json:"answer,omitempty" doc:"The beginning of the last answer, at most 1 KiB, or why there was none."`
}

func answerOf(w store.Webhook, now time.Time) Webhook {
	of := Webhook{ID: w.ID, Name: w.Name, Tenant: w.Tenant, URL: w.URL, Types: w.Types, Disabled: w.Disabled, DisabledReason: w.DisabledReason, Created: w.Created, CreatedBy: w.CreatedBy}
	if w.Previous.ID != "" && now.Before(w.PreviousUntil) {
		of.PreviousUntil = &w.PreviousUntil
	}
	return of
}

func deliveryOf(d store.Delivery) WebhookDelivery {
	return WebhookDelivery{
		ID: d.ID, Message: d.Message.ID, Type: d.Type, Tenant: d.Tenant, Object: d.Object, State: string(d.State), Attempts: d.Attempts, Since: d.Since, Next: orNil(d.Due), Tried: orNil(d.Tried),
		Status: d.Status, Answer: d.Answer,
	}
}

func orNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// unreadable is answered if the keys cannot be read. The reason is for the log.
func unreadable(ctx context.Context, err error) *problem.Problem {
	logr.FromContextOrDiscard(ctx).Error(err, "Reading the keys that encrypt secrets of webhooks")
	return problem.New(problem.Unavailable, "The manager cannot read the keys that encrypt the secrets of webhooks. Its log has the reason.")
}
