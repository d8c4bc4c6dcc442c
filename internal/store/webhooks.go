package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// KindWebhookSecret is the kind of the secrets that sign messages to webhooks.
const KindWebhookSecret = "webhook-secret"

// ErrTooManyWebhooks is returned if a tenant, or the platform, already has MaxWebhooks.
var ErrTooManyWebhooks = errors.New("there are too many webhooks")

// The limits of webhooks: webhooks of a tenant, or of the platform; waiting messages of a webhook, beyond which the oldest are parked; and delivered,
// and parked, messages that are kept of a webhook.
const (
	MaxWebhooks  = 20
	MaxWaiting   = 5000
	MaxDelivered = 500
	MaxParked    = 1000
)

// KeepWebhooks is how long a webhook is kept whose tenant is gone.
const KeepWebhooks = 30 * 24 * time.Hour

// ParkedEvery is the minimum time between two events in the audit log about parked messages of a webhook.
const ParkedEvery = time.Hour

// Webhook is an endpoint that gets messages.
type Webhook struct {
	ID, Name string
	// Tenant is the tenant whose messages it gets, "" for those of all tenants and of the platform, or OfEarlier of one.
	Tenant string
	// TenantUID is the UID of that Tenant: another one of the same name has another UID. It is "" for the platform, and for webhooks of a
	// manager that did not store it.
	TenantUID string
	URL       string
	// Types are the types of messages that it gets: "app.*" is a whole group, "*" is all.
	Types []string
	// Disabled is true if it gets no new messages; its waiting messages keep waiting. DisabledReason says why the manager disabled it, "" if somebody
	// else did.
	Disabled       bool
	DisabledReason string
	Created        time.Time
	CreatedBy      string
	// Secret signs. Previous signs too until PreviousUntil; its ID is "" if there is none. Their kind is KindWebhookSecret.
	Secret, Previous Sealed
	PreviousUntil    time.Time
}

// earlier precedes the name of a deleted tenant. No name of a tenant has this character.
const earlier = "~"

// OfEarlier returns the owner that webhooks of a deleted tenant get when another tenant of the same name is created. No tenant has this name, so only
// administrators see them. Administrators may give them to the new tenant.
func OfEarlier(tenant string) string { return earlier + tenant }

// TenantRef is a Tenant of the cluster. The UID distinguishes it from an earlier one of the same name. The zero TenantRef is the platform.
type TenantRef struct {
	Name, UID string
	Created   time.Time
}

// TenantName returns the name of the tenant of a webhook, also of an earlier one, "" for the platform.
func (w *Webhook) TenantName() string { return strings.TrimPrefix(w.Tenant, earlier) }

// IsOf reports whether a webhook belongs to a tenant, and not to an earlier one of the same name. For a webhook without TenantUID the times
// of creation decide, although two clocks wrote them: a webhook that is older than the tenant, if only by a moment, belongs to an earlier
// one.
func (w *Webhook) IsOf(t TenantRef) bool {
	if w.TenantUID == "" {
		return w.Tenant == t.Name && !w.Created.Before(t.Created)
	}
	return w.Tenant == t.Name && w.TenantUID == t.UID
}

// Enable enables a webhook, and sets its tenant: its own one or, if it belonged to an earlier tenant, the present tenant of that name.
func (w *Webhook) Enable(t TenantRef) {
	w.Disabled, w.DisabledReason, w.Tenant, w.TenantUID = false, "", t.Name, t.UID
}

// Wants reports whether the webhook gets messages of a type.
func (w Webhook) Wants(kind string) bool {
	for _, pattern := range w.Types {
		group, all := strings.CutSuffix(pattern, "*")
		if pattern == kind || all && strings.HasPrefix(kind, group) {
			return true
		}
	}
	return false
}

// Message is a message about an event.
type Message struct {
	// ID is the same for all webhooks, and each time that the message is sent.
	ID string
	// Type is what happened, such as app.healthy.
	Type string
	// Tenant is the tenant whose object it is about, "" for an object of the platform. Webhooks of a tenant get it only if they belong to
	// the Tenant with TenantUID; webhooks without a UID if they belong to a tenant with this name, unless MatchUID is true.
	Tenant, TenantUID string
	// MatchUID keeps the message from webhooks without a UID: it is about a Tenant that is not the one that has the name now. It is not stored.
	MatchUID bool
	// Object is the object of the event, such as app/acme/shop/web. Messages about one object are sent in order.
	Object string
	At     time.Time
	Body   []byte
}

// DeliveryState says whether a message was delivered to a webhook.
type DeliveryState string

// The states of a Delivery.
const (
	// A waiting message is sent when it is due, again and again.
	Waiting   DeliveryState = "waiting"
	Delivered DeliveryState = "delivered"
	// A parked message is not sent any more, unless somebody asks for it.
	Parked DeliveryState = "parked"
)

// Delivery is a message for one webhook.
type Delivery struct {
	// ID increases with each delivery.
	ID      int64
	Webhook string
	Message
	State    DeliveryState
	Attempts int
	// Since is when it began to wait.
	Since time.Time
	// Due is when it is sent next, if it waits.
	Due time.Time
	// Tried is when it was sent last, zero if it never was.
	Tried time.Time
	// Status is the status of the last answer, 0 if there was none. Answer is the beginning of its body, or why there was none.
	Status int
	Answer string
}

// Claim gives one sender the right to send some deliveries, until a time. Afterwards any sender may claim them, because the first one was killed.
type Claim struct {
	// By is made anew for each claim.
	By         string
	Now, Until time.Time
}

// DueWebhook is a webhook with messages that are due.
type DueWebhook struct{ ID, Tenant string }

// Outcome is the result of an attempt.
type Outcome struct {
	// Delivery as it is after the attempt.
	Delivery
	Claim string
	// Expired, unless zero, parks all messages that have waited for the webhook since then or longer, because the webhook has not answered
	// for that long.
	Expired time.Time
	// Held, unless zero, is the time at which the manager could not send the message because of a problem of its own. Messages that wait
	// for the webhook are then tried for a day from about that time on.
	Held time.Time
	// GoneURL, unless "", is the URL whose server answered that it wants no more messages (410). If the webhook still has this URL, it is
	// disabled, with Answer as the reason.
	GoneURL string
}

// Webhooks stores webhooks and their messages.
type Webhooks interface {
	Endpoints
	Outbox
	Deliveries
	Observations
}

// Endpoints stores webhooks. tenant is "" for webhooks of any tenant.
type Endpoints interface {
	// CreateWebhook returns ErrTooManyWebhooks if the tenant already has MaxWebhooks.
	CreateWebhook(ctx context.Context, w Webhook, e Event) error
	// ListWebhooks returns up to limit webhooks whose IDs come after one, in the order of IDs.
	ListWebhooks(ctx context.Context, tenant, after string, limit int) ([]Webhook, error)
	// GetWebhook returns ErrNotFound if there is none.
	GetWebhook(ctx context.Context, tenant, id string) (Webhook, error)
	// ChangeWebhook changes a webhook in one transaction, and returns the result. It deletes secrets that the webhook does not have any more. If it
	// enables the webhook, waiting messages begin to wait anew at e.At. If change fails, its error is returned and nothing is changed.
	ChangeWebhook(ctx context.Context, tenant, id string, change func(*Webhook) error, e Event) (Webhook, error)
	// DeleteWebhook deletes a webhook with its secrets and deliveries. It returns ErrNotFound if there is none.
	DeleteWebhook(ctx context.Context, tenant, id string, e Event) error
}

// Outbox is the part of the store that sends messages.
type Outbox interface {
	// ListDue returns the webhooks with messages that may be sent now.
	ListDue(ctx context.Context, now time.Time) ([]DueWebhook, error)
	// ClaimDeliveries claims up to limit messages for a webhook that are due. Of the messages about one object, only the oldest one that waits can be
	// due.
	ClaimDeliveries(ctx context.Context, webhook string, c Claim, limit int) ([]Delivery, error)
	// FinishAttempt records the result of an attempt, unless another sender claimed the delivery meanwhile. It records an event if it parks messages
	// or disables the webhook.
	FinishAttempt(ctx context.Context, o Outcome) error
	// ReleaseDelivery ends the claim of a delivery that was not sent.
	ReleaseDelivery(ctx context.Context, id int64, claim string) error
	// CountDeliveries returns the number of deliveries in each state.
	CountDeliveries(ctx context.Context) (map[DeliveryState]int, error)
}

// Deliveries is the part of the store for the owners of webhooks.
type Deliveries interface {
	// EnqueueFor writes a message for one webhook, whatever types it wants. It returns ErrTooManyWaiting if MaxWaiting wait for it.
	EnqueueFor(ctx context.Context, webhook string, m Message, e Event) (Delivery, error)
	// ListDeliveries returns up to limit deliveries of a webhook whose IDs are less than before, the newest first; with before 0 it begins with the
	// newest. It lists all states if state is "".
	ListDeliveries(ctx context.Context, webhook string, state DeliveryState, before int64, limit int) ([]Delivery, error)
	// Redeliver sends a delivery again now, and tries it for as long as a new one. Newer messages about its object wait for it. It returns
	// ErrNotFound if the webhook has no such delivery.
	Redeliver(ctx context.Context, webhook string, id int64, e Event) (Delivery, error)
}

// ErrTooManyWaiting is returned if MaxWaiting messages already wait for the webhook.
var ErrTooManyWaiting = errors.New("too many messages wait for the webhook")

// ObservedState is the last observed state of an object.
type ObservedState struct{ Object, State string }

// StateChange is a change of the state of an object. From is "" if the object is new, To is "" if it was deleted.
type StateChange struct {
	Object, From, To string
	// Messages are about the change, in their order.
	Messages []Message
	// NewTenant is a tenant that is new, zero if none is. Webhooks of this name that are not of it belonged to another tenant, or to the
	// same one before the cluster was built anew. They are disabled, and those of OfEarlier from then on; each has an event.
	NewTenant TenantRef
}

// Observations stores the states of the objects of the cluster, so that webhooks get messages about what happened while no manager ran, and
// no message twice.
type Observations interface {
	// ListStates returns up to limit states whose objects come after one, in the order of objects.
	ListStates(ctx context.Context, after string, limit int) ([]ObservedState, error)
	// RecordChanges records changes, and enqueues their messages for all webhooks that want them, in one transaction. It skips a change if the stored
	// state of the object is not From, because another manager recorded a change, and returns these objects.
	RecordChanges(ctx context.Context, changes []StateChange) (conflicts []string, err error)
	// SweepWebhooks deletes the webhooks whose tenants have not been among those that exist for KeepWebhooks, with an event each. It counts
	// from when a webhook is first swept without its tenant.
	SweepWebhooks(ctx context.Context, exist []TenantRef, now time.Time) error
}
