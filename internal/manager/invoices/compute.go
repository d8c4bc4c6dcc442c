package invoices

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// computed is an invoice that has no number, with what it was computed of.
type computed struct {
	billing.Input
	*billing.Sums
	invoice *billing.Invoice
	// created is when the tenant was, or when its own hours began, if that is later.
	created time.Time
}

// compute computes the invoice of a month by a price list. Usage goes by the names of tenants, so only that of the payer's own hours counts.
func (o *Operations) compute(ctx context.Context, tenant *payer, month billing.Month, prices *billing.Prices) (*computed, error) {
	leave, ok := o.Turns.Enter(ctx, tenant.Name, 1)
	if !ok {
		return nil, problem.New(problem.TooManyRequests, "Other invoices are computed now.").After(5 * time.Second)
	}
	defer leave()
	c := &computed{Input: billing.Input{Tenant: tenant.Name, Month: month, Prices: *prices}, Sums: billing.NewSums(month), created: tenant.Created}
	if tenant.from.After(c.created) {
		c.created = tenant.from
	}
	from, until := month.Start(), month.End()
	if tenant.from.After(from) {
		from = tenant.from
	}
	if tenant.until.Before(until) {
		until = tenant.until
	}
	var wrong error
	err := o.Used(ctx, tenant.Name, from, until, func(u store.Used) error {
		wrong = c.Add(billing.Used{Cluster: u.Cluster, Project: u.Project, App: u.App, Hour: u.Hour, Amounts: u.Amounts})
		return wrong
	})
	if wrong != nil {
		return nil, incomputable(wrong)
	}
	if err == nil {
		c.Gaps, err = o.Gaps(ctx, from, until)
	}
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	c.Usage = c.Used()
	if c.invoice, err = billing.Compute(c.Input); err != nil {
		return nil, incomputable(err)
	}
	c.invoice.Share(c.Sums)
	return c, nil
}

func incomputable(err error) error {
	return problem.New(problem.Conflict, "The invoice cannot be computed: "+err.Error()+".")
}

// forecast returns the sums that the invoice will have; nil if there is nothing to go on from.
func (c *computed) forecast(now time.Time) (*Forecast, error) {
	input := c.Input
	if input.Usage = c.Forecast(c.created, now); input.Usage == nil {
		return nil, nil
	}
	of, err := billing.Compute(input)
	if err != nil {
		return nil, incomputable(err)
	}
	return &Forecast{Net: of.Net, Total: of.Total}, nil
}

// monthOf reads a month, which the pattern of a parameter has checked.
func monthOf(text, location string) (billing.Month, error) {
	month, err := billing.ParseMonth(text)
	if err != nil {
		return month, problem.New(problem.Invalid, "The month is invalid.", problem.Fault{Location: location, Message: "is no month such as 2026-11"})
	}
	return month, nil
}

// forgotten reports whether usage of the month is not kept any more.
func forgotten(month billing.Month, now time.Time) bool {
	return month.Start().Before(now.Add(-store.KeepUsage))
}
