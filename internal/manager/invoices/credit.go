package invoices

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type creditInput struct {
	once.Key
	NumberInput
	Body struct {
		Net    string `json:"net,omitempty" maxLength:"37" doc:"The part of the net sum to credit, as a decimal; its taxes are credited with it. Default: all that is not credited yet." example:"12.50"`
		Reason string `json:"reason" minLength:"1" maxLength:"500" doc:"Why. It is on the credit note."`
	}
}

// credit makes a credit note about an invoice.
func (o *Operations) credit(ctx context.Context, in *creditInput) (*answer[Invoice], error) {
	caller, now := auth.Of(ctx), store.Time(o.Now())
	of, err := o.find(ctx, in.NumberInput)
	if err != nil {
		return nil, err
	}
	if err := mayWrite(caller, of.Tenant); err != nil {
		return nil, err
	}
	if of.Credits != 0 {
		return nil, problem.New(problem.Conflict, fmt.Sprintf("This is a credit note about the invoice %d. Only an invoice is credited.", of.Credits))
	}
	original, err := invoiceOf(&of)
	if err != nil {
		return nil, err
	}
	var is store.Invoice
	request := once.Request{Key: in.Key, Caller: caller.Token.ID, Of: []any{"creditInvoice", in.Number, in.Body}, Now: now}
	err = once.Do(ctx, o.Store, request, nil, func(id string, _ bool) (err error) {
		note := store.Invoice{ID: id, TenantUID: of.TenantUID, Credits: of.Number, Reason: in.Body.Reason, Closed: now, ClosedBy: caller.Token.ID}
		next := func(before []store.Invoice) (store.Invoice, error) {
			return noteAfter(before, &original.Invoice, in.Body.Net, note)
		}
		is, err = o.add(ctx, of.Tenant, of.Month, next, caller.Event(ctx, now, "creditInvoice", ""))
		return err
	})
	if err != nil {
		return nil, err
	}
	return o.answer(ctx, is)
}

// noteAfter returns a credit note after those of the month before it, or the one that the same request made.
func noteAfter(before []store.Invoice, original *billing.Invoice, net string, note store.Invoice) (store.Invoice, error) {
	credited := new(big.Rat)
	for _, is := range before {
		if is.ID == note.ID {
			return is, nil
		}
		if of, ok := new(big.Rat).SetString(is.Net); ok && is.Credits == note.Credits {
			credited.Add(credited, of)
		}
	}
	of, err := original.Credit(net, credited)
	switch {
	case errors.Is(err, billing.ErrNothingLeft):
		return note, problem.New(problem.Conflict, "All of the invoice was credited before.")
	case err != nil:
		return note, problem.New(problem.Invalid, "The amount is invalid.", problem.Fault{Location: "body.net", Message: err.Error()})
	}
	err = fill(&note, of)
	return note, err
}
