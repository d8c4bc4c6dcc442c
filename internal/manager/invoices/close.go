package invoices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// settled is how long after the end of a month it may be closed: what was measured is stored by then, and a clock that is an hour ahead closes none too early.
const settled = 2 * time.Hour

type closeInput struct {
	once.Key
	Tenant string `path:"tenant" maxLength:"63"`
	Month  string `path:"month" pattern:"^[1-9][0-9]{3}-(0[1-9]|1[0-2])$" doc:"A calendar month in UTC." example:"2026-11"`
	UID    string `query:"uid" maxLength:"63" doc:"The UID of the Tenant that pays, if several had the name in the month. Default: the last one of them."`
	Again  bool   `query:"again" doc:"Make another invoice of a month whose invoice was credited completely, or is of 0."`
}

// requested is what an Idempotency-Key is for. Without a UID it is what it was before there were UIDs, so that a request that an older manager began can be sent again.
func (in *closeInput) requested() []any {
	of := []any{"closeInvoice", in.Tenant, in.Month, in.Again}
	if in.UID != "" {
		of = append(of, in.UID)
	}
	return of
}

// close answers the invoice of a month. If the month has none, it makes it.
func (o *Operations) close(ctx context.Context, in *closeInput) (*answer[Invoice], error) {
	caller := auth.Of(ctx)
	if err := mayWrite(caller, in.Tenant); err != nil {
		return nil, err
	}
	month, err := monthOf(in.Month, "path.month")
	if err != nil {
		return nil, err
	}
	var is store.Invoice
	request := once.Request{Key: in.Key, Caller: caller.Token.ID, Of: in.requested(), Now: store.Time(o.Now())}
	err = once.Do(ctx, o.Store, request, nil, func(id string, _ bool) (err error) {
		is, err = o.closeOnce(ctx, in, month, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return o.answer(ctx, is)
}

func (o *Operations) closeOnce(ctx context.Context, in *closeInput, month billing.Month, id string) (store.Invoice, error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	of, err := o.payerOf(ctx, in.Tenant, month, in.UID)
	if err != nil {
		return o.forgottenPayer(ctx, in, err)
	}
	closed, err := o.closed(ctx, of, month)
	if err != nil {
		return store.Invoice{}, err
	}
	made := &store.Invoice{}
	if !closed || in.Again {
		if made, err = o.made(ctx, of, month); err != nil {
			return store.Invoice{}, err
		}
	}
	made.ID, made.Closed, made.ClosedBy = id, now, caller.Token.ID
	return o.add(ctx, in.Tenant, month.String(), func(before []store.Invoice) (store.Invoice, error) {
		for _, is := range before {
			if is.ID == id { // The same request made it.
				return is, nil
			}
		}
		if is, left := standing(before, of.UID); is != nil && (!in.Again || left.Sign() > 0) {
			return *is, nil
		}
		return *made, nil
	}, caller.Event(ctx, now, "closeInvoice", ""))
}

// forgottenPayer returns the last invoice of a month of which it is not recorded any more who pays, and the error if there is none. Who pays is not forgotten if it is only not known now.
func (o *Operations) forgottenPayer(ctx context.Context, in *closeInput, unknown error) (store.Invoice, error) {
	var refused *problem.Problem
	if in.Again || !errors.As(unknown, &refused) || refused.Code != problem.NotFound && refused.Code != problem.Conflict {
		return store.Invoice{}, unknown
	}
	const batch = 100
	for before := int64(0); ; {
		found, err := o.Store.ListInvoices(ctx, store.InvoiceFilter{Tenant: in.Tenant, TenantUID: in.UID, Month: in.Month}, before, batch)
		if err != nil {
			return store.Invoice{}, problem.FromStore(ctx, err)
		}
		for _, is := range found {
			if before = is.Number; is.Credits == 0 {
				return is, nil
			}
		}
		if len(found) < batch {
			return store.Invoice{}, unknown
		}
	}
}

// made computes the invoice of a month that ended.
func (o *Operations) made(ctx context.Context, of *payer, month billing.Month) (*store.Invoice, error) {
	switch end := month.End().Add(settled); {
	case store.Time(o.Now()).Before(end):
		return nil, problem.New(problem.Conflict, fmt.Sprintf("The month can be closed from %s on: until then usage of it may come in.", end.Format(time.RFC3339)))
	case forgotten(month, store.Time(o.Now())):
		return nil, problem.New(problem.Conflict, "Usage of the month is not kept any more.")
	case !of.in(month):
		return nil, absent(of.Name, month)
	}
	prices, why, err := o.pricesFor(ctx, of)
	switch {
	case err != nil:
		return nil, err
	case prices == nil:
		return nil, problem.New(problem.Conflict, why)
	}
	c, err := o.compute(ctx, of, month, prices)
	if err != nil {
		return nil, err
	}
	made := &store.Invoice{TenantUID: of.UID}
	return made, fill(made, c.invoice)
}

// fill fills in what is stored of an invoice.
func fill(is *store.Invoice, of *billing.Invoice) error {
	body, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("writing an invoice: %w", err)
	}
	is.Currency, is.Net, is.Total, is.Body = of.Currency, of.Net, of.Total, body
	return nil
}

// add is AddInvoice, with a problem as its error.
func (o *Operations) add(ctx context.Context, tenant, month string, next func([]store.Invoice) (store.Invoice, error), e store.Event) (store.Invoice, error) {
	present, err := o.Tenant(ctx, tenant)
	if err != nil && !notFound(err) {
		return store.Invoice{}, err
	}
	is, err := o.Store.AddInvoice(ctx, tenant, month, next, store.InvoiceRecord{Event: e, Message: func(is store.Invoice) (store.Message, error) { return messageOf(is, present) }})
	var refused *problem.Problem
	switch {
	case errors.As(err, &refused):
		return is, refused
	case err != nil:
		return is, problem.FromStore(ctx, err)
	}
	return is, nil
}

// answer answers an invoice, and reads its body if it was stored before.
func (o *Operations) answer(ctx context.Context, is store.Invoice) (*answer[Invoice], error) {
	if is.Body == nil {
		var err error
		if is, err = o.Store.GetInvoice(ctx, is.Number); err != nil {
			return nil, problem.FromStore(ctx, err)
		}
	}
	invoice, err := invoiceOf(&is)
	return &answer[Invoice]{invoice}, err
}
