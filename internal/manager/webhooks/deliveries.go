package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type (
	getInput struct {
		OneInput
		etag.Known
	}
	deliveriesInput struct {
		OneInput
		page.Query
		State string `query:"state" enum:"waiting,delivered,parked" doc:"Only those in a state. Default: all."`
	}
	pingInput struct {
		OneInput
		once.Key
	}
	deliveryInput struct {
		OneInput
		once.Key
		Delivery string `path:"delivery" maxLength:"20"`
	}
)

func (o *Operations) list(ctx context.Context, q *page.OfTenant) (*answer[page.List[Webhook]], error) {
	tenant, refused := auth.Of(ctx).Place(q.Tenant, access.Webhooks)
	if refused != nil {
		return nil, refused
	}
	own, err := o.own(ctx, tenant)
	if err != nil {
		return nil, err
	}
	read, err := page.Read(ctx, q.Query, func(after string, most int) ([]store.Webhook, error) {
		return o.Store.ListWebhooks(ctx, tenant, after, most)
	}, func(w store.Webhook) store.Webhook { return w }, func(w store.Webhook) string { return w.ID })
	if err != nil {
		return nil, err
	}
	list := page.List[Webhook]{Items: []Webhook{}, Next: read.Next}
	for _, w := range read.Items {
		if own(&w) {
			list.Items = append(list.Items, answerOf(w, store.Time(o.Now())))
		}
	}
	return &answer[page.List[Webhook]]{list}, nil
}

func (o *Operations) get(ctx context.Context, in *getInput) (*tagged, error) {
	w, err := o.find(ctx, in.ID, access.Read)
	if err != nil {
		return nil, err
	}
	is, err := o.tag(w)
	if err != nil {
		return nil, err
	}
	is.unless(in.Known)
	return is, nil
}

func (o *Operations) deliveries(ctx context.Context, in *deliveriesInput) (*answer[page.List[WebhookDelivery]], error) {
	w, err := o.find(ctx, in.ID, access.Read)
	if err != nil {
		return nil, err
	}
	key, err := in.Key()
	if err != nil {
		return nil, err
	}
	before := int64(0)
	if key != "" {
		if before, err = strconv.ParseInt(key, 10, 64); err != nil || before < 1 {
			return nil, problem.New(problem.BadRequest, "The cursor is not one that this list answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor of this list"})
		}
	}
	found, err := o.Store.ListDeliveries(ctx, w.ID, store.DeliveryState(in.State), before, in.Limit+1)
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	all := make([]WebhookDelivery, 0, len(found))
	for _, d := range found {
		all = append(all, deliveryOf(d))
	}
	return &answer[page.List[WebhookDelivery]]{page.Of(in.Query, all, func(d WebhookDelivery) string { return strconv.FormatInt(d.ID, 10) })}, nil
}

func (o *Operations) redeliver(ctx context.Context, in *deliveryInput) (*answer[WebhookDelivery], error) {
	w, err := o.change(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(in.Delivery, 10, 64)
	if err != nil {
		return nil, problem.New(problem.NotFound, "")
	}
	sent := &answer[WebhookDelivery]{}
	err = o.once(ctx, in.Key, []any{"redeliverToWebhook", w.ID, id}, &sent.Body, func(string, bool) error {
		d, err := o.Store.Redeliver(ctx, w.ID, id, o.event(ctx, "redeliverToWebhook", w))
		if err != nil {
			return problem.FromStore(ctx, err)
		}
		sent.Body = deliveryOf(d)
		return nil
	})
	return sent, err
}

func (o *Operations) ping(ctx context.Context, in *pingInput) (*answer[WebhookDelivery], error) {
	w, err := o.change(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	sent := &answer[WebhookDelivery]{}
	err = o.once(ctx, in.Key, []any{"pingWebhook", w.ID}, &sent.Body, func(string, bool) (err error) {
		sent.Body, err = o.pinged(ctx, w)
		return err
	})
	return sent, err
}

func (o *Operations) pinged(ctx context.Context, w store.Webhook) (WebhookDelivery, error) {
	now := store.Time(o.Now())
	id, body, err := eventtype.Encode(eventtype.Ping, now, map[string]string{"webhook": w.ID, "name": w.Name})
	if err != nil {
		return WebhookDelivery{}, err
	}
	m := store.Message{ID: id, Type: eventtype.Ping, Tenant: w.Tenant, Object: "webhook/" + w.ID, At: now, Body: body}
	d, err := o.Store.EnqueueFor(ctx, w.ID, m, o.event(ctx, "pingWebhook", w))
	if errors.Is(err, store.ErrTooManyWaiting) {
		return WebhookDelivery{}, problem.New(problem.Conflict, fmt.Sprintf("%d messages wait for the webhook, so no other one is written only to try it.", store.MaxWaiting))
	}
	if err != nil {
		return WebhookDelivery{}, problem.FromStore(ctx, err)
	}
	return deliveryOf(d), nil
}
