package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/outbox"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// OneInput names a webhook.
type OneInput struct {
	ID string `path:"id" maxLength:"64"`
}

type (
	answer[T any] struct{ Body T }
	createInput   struct {
		once.Key
		Body struct {
			Name     string   `json:"name" minLength:"1" maxLength:"100" doc:"What it is for."`
			Tenant   string   `json:"tenant,omitempty" maxLength:"63" doc:"The tenant whose messages it gets. Default: the only one of the caller; of administrators, the platform: then it gets those of all tenants."`
			URL      string   `json:"url" minLength:"1" maxLength:"2048" doc:"Where messages are sent, by POST."`
			Types    []string `json:"types" minItems:"1" maxItems:"50" nullable:"false" doc:"The types of messages that it gets; app.* is all of a group, and * all." example:"app.*"`
			Disabled bool     `json:"disabled,omitempty" doc:"Send nothing yet."`
		}
	}
	patchInput struct {
		OneInput
		Matched
		Body struct {
			Name     *string  `json:"name,omitempty" minLength:"1" maxLength:"100"`
			URL      *string  `json:"url,omitempty" minLength:"1" maxLength:"2048" doc:"The new address. Messages that wait are sent to it too."`
			Types    []string `json:"types,omitempty" minItems:"1" maxItems:"50" nullable:"false" doc:"Those of messages from now on."`
			Disabled *bool    `json:"disabled,omitempty" doc:"While it is true, it gets no new messages, and what waits for it waits on."`
		}
	}
	rotateInput struct {
		OneInput
		once.Key
		Body struct {
			Seconds int `json:"seconds,omitempty" minimum:"1" maximum:"604800" default:"86400" doc:"How long the secret that is replaced signs too."`
		}
	}
)

func (o *Operations) create(ctx context.Context, in *createInput) (*answer[WebhookSecret], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	tenant, refused := caller.Place(in.Body.Tenant, access.Webhooks)
	if refused != nil {
		return nil, refused
	}
	if !caller.Grant.May(access.Webhooks, access.Create, tenant, "") {
		return nil, problem.New(problem.Forbidden, "")
	}
	of, err := o.tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if err := o.writes(tenant); err != nil {
		return nil, err
	}
	var made *answer[WebhookSecret]
	err = o.once(ctx, in.Key, []any{"createWebhook", of.Name, of.UID, in.Body}, nil, func(id string, done bool) (err error) {
		w := store.Webhook{ID: id, Name: in.Body.Name, Tenant: of.Name, TenantUID: of.UID, URL: in.Body.URL, Types: in.Body.Types, Disabled: in.Body.Disabled, Created: now, CreatedBy: caller.Token.ID}
		made, err = o.made(ctx, w, done)
		return err
	})
	return made, err
}

// made stores a new webhook, unless the same request stored it before.
func (o *Operations) made(ctx context.Context, w store.Webhook, done bool) (*answer[WebhookSecret], error) {
	id := secretID(w.ID, w.ID)
	if before, err := o.again(ctx, w.Tenant, w.ID, id, done); before != nil || err != nil {
		return before, err
	}
	if err := o.check(ctx, w.URL, w.Types); err != nil {
		return nil, err
	}
	secret, sealed, err := o.newSecret(ctx, id)
	if err != nil {
		return nil, err
	}
	w.Secret = sealed
	err = o.Store.CreateWebhook(ctx, w, o.event(ctx, "createWebhook", w))
	if errors.Is(err, store.ErrTooManyWebhooks) {
		return nil, problem.New(problem.Conflict, fmt.Sprintf("There are %d webhooks, which are all that there may be. One that is not used any more may be deleted.", store.MaxWebhooks))
	}
	if err != nil {
		// The same request may have stored it meanwhile.
		if before, _ := o.again(ctx, w.Tenant, w.ID, id, false); before != nil {
			return before, nil
		}
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[WebhookSecret]{WebhookSecret{answerOf(w, w.Created), secret}}, nil
}

// tenant refuses a webhook of a tenant that does not exist: it would get what happens to the next one of this name.
func (o *Operations) tenant(ctx context.Context, name string) (store.TenantRef, error) {
	if name == "" {
		return store.TenantRef{}, nil
	}
	t, err := o.Tenant(ctx, name)
	if isNotFound(err) {
		return t, problem.New(problem.Invalid, "There is no such tenant.", problem.Fault{Location: "body.tenant", Message: "is no tenant"})
	}
	return t, err
}

// check refuses types that do not exist, and URLs to which nothing is sent.
func (o *Operations) check(ctx context.Context, address string, types []string) error {
	for i, t := range types {
		if !eventtype.IsPattern(t) {
			return problem.New(problem.Invalid, "A type is invalid.", problem.Fault{Location: fmt.Sprintf("body.types[%d]", i), Message: "is no type of messages; app.* is a group of them, and * are all"})
		}
	}
	invalid := func(why string) error {
		return problem.New(problem.Invalid, "The URL is invalid.", problem.Fault{Location: "body.url", Message: why})
	}
	u, err := url.Parse(address)
	switch {
	case address == "":
		return nil
	case err != nil, u.Hostname() == "", u.Opaque != "", u.Fragment != "":
		return invalid("may be a URL such as https://hooks.example.com/kubeop")
	case u.User != nil:
		return invalid("may have no user and no password: messages are signed")
	}
	err = o.Check(ctx, u)
	var refused *outbox.RefusedError
	if errors.As(err, &refused) {
		return invalid(refused.Why)
	}
	return err
}

// enabledFor returns the tenant to which a change gives the webhook, if it enables it.
func (in *patchInput) enabledFor(ctx context.Context, o *Operations, w store.Webhook) (store.TenantRef, error) {
	name := w.TenantName()
	if name == "" || in.Body.Disabled == nil || *in.Body.Disabled {
		return store.TenantRef{}, nil
	}
	t, err := o.Tenant(ctx, name)
	if isNotFound(err) {
		return t, problem.New(problem.Conflict, "The tenant "+name+" does not exist, so nothing is sent about it.")
	}
	return t, err
}

// errOtherVersion is returned if the webhook is none of the versions that the caller saw.
var errOtherVersion = errors.New("the webhook has another version")

func (o *Operations) patch(ctx context.Context, in *patchInput) (*tagged, error) {
	w, err := o.change(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	address := ""
	if in.Body.URL != nil {
		address = *in.Body.URL
	}
	if err := o.check(ctx, address, in.Body.Types); err != nil {
		return nil, err
	}
	tenant, err := in.enabledFor(ctx, o, w)
	if err != nil {
		return nil, err
	}
	w, err = o.Store.ChangeWebhook(ctx, w.Tenant, w.ID, func(w *store.Webhook) error {
		is, err := o.tag(*w)
		if err != nil {
			return err
		}
		if !in.etags.Has(is.ETag) {
			return errOtherVersion
		}
		if in.Body.Name != nil {
			w.Name = *in.Body.Name
		}
		if address != "" {
			w.URL = address
		}
		if in.Body.Types != nil {
			w.Types = in.Body.Types
		}
		if disabled := in.Body.Disabled; disabled != nil && *disabled {
			w.Disabled, w.DisabledReason = true, ""
		} else if disabled != nil {
			w.Enable(tenant)
		}
		return nil
	}, o.event(ctx, "patchWebhook", w))
	if errors.Is(err, errOtherVersion) {
		return nil, problem.New(problem.Conflict, "The webhook is none of the versions in If-Match any more. Nothing was written.")
	}
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return o.tag(w)
}

func (o *Operations) rotate(ctx context.Context, in *rotateInput) (*answer[WebhookSecret], error) {
	w, err := o.change(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var rotated *answer[WebhookSecret]
	err = o.once(ctx, in.Key, []any{"rotateWebhookSecret", w.ID, in.Body}, nil, func(id string, done bool) (err error) {
		id = secretID(w.ID, id)
		if rotated, err = o.again(ctx, w.Tenant, w.ID, id, done); rotated == nil && err == nil {
			rotated, err = o.rotated(ctx, w, id, time.Duration(in.Body.Seconds)*time.Second)
		}
		return err
	})
	return rotated, err
}

// errRotated is returned if the same request gave the webhook its secret meanwhile.
var errRotated = errors.New("the webhook has the secret already")

// rotated gives a webhook a new secret.
func (o *Operations) rotated(ctx context.Context, w store.Webhook, id string, both time.Duration) (*answer[WebhookSecret], error) {
	of, webhook := w.Tenant, w.ID
	secret, sealed, err := o.newSecret(ctx, id)
	if err != nil {
		return nil, err
	}
	now := store.Time(o.Now())
	w, err = o.Store.ChangeWebhook(ctx, w.Tenant, w.ID, func(w *store.Webhook) error {
		if w.Secret.ID == id {
			return errRotated
		}
		w.Secret, w.Previous, w.PreviousUntil = sealed, w.Secret, now.Add(both)
		return nil
	}, o.event(ctx, "rotateWebhookSecret", w))
	if errors.Is(err, errRotated) {
		return o.again(ctx, of, webhook, id, true)
	}
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return &answer[WebhookSecret]{WebhookSecret{answerOf(w, now), secret}}, nil
}

func (o *Operations) remove(ctx context.Context, in *OneInput) (*struct{}, error) {
	w, err := o.find(ctx, in.ID, access.Delete)
	if err != nil {
		return nil, err
	}
	if err := o.Store.DeleteWebhook(ctx, w.Tenant, w.ID, o.event(ctx, "deleteWebhook", w)); err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	return nil, nil
}
