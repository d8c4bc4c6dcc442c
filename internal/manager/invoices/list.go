package invoices

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

type listInput struct {
	page.OfTenant
	Month string `query:"month" pattern:"^[1-9][0-9]{3}-(0[1-9]|1[0-2])$" doc:"Only those of this month in UTC. Default: all, and the draft of the running month." example:"2026-11"`
}

// Forecast is what an invoice will be if usage goes on as it is.
type Forecast struct {
	Net   string `json:"net"`
	Total string `json:"total"`
}

// DraftInvoice is what the invoice of a month would be now.
type DraftInvoice struct {
	Computed time.Time `json:"computed"`
	Forecast *Forecast `json:"forecast,omitempty" doc:"Of the running month: the estimated invoice. Each hour that has not ended counts as the mean of the last 24 hours, or of as many as there are in the month since the tenant was created. It is missing before the first whole hour has ended."`
	billing.Invoice
}

// InvoicePage is a page of invoices, with the draft of a month that is not closed.
type InvoicePage struct {
	page.List[InvoiceSummary]
	Draft   *DraftInvoice `json:"draft,omitempty" doc:"What the invoice of the month would be now. It is on the first page of lists of one tenant, unless the month is closed."`
	NoDraft string        `json:"noDraft,omitempty" doc:"Why there is no draft of the month."`
	// Unclosed is how an administrator finds deleted tenants of which usage is not paid.
	Unclosed []Unclosed `json:"unclosed,omitempty" nullable:"false" doc:"The tenants that have no invoice of the month, also those that were deleted. It is on the first page of lists of a month of all tenants."`
}

type answer[T any] struct{ Body T }

func (o *Operations) list(ctx context.Context, in *listInput) (*answer[InvoicePage], error) {
	caller := auth.Of(ctx)
	tenant, err := place(caller, in.Tenant, access.Invoices)
	if err != nil {
		return nil, err
	}
	of := store.InvoiceFilter{Tenant: tenant, Month: in.Month}
	if !ofPlatform(caller) {
		is, err := o.Tenant(ctx, tenant)
		if err != nil {
			return nil, err
		}
		of.TenantUID = is.UID
	}
	before, err := position(in.Query)
	if err != nil {
		return nil, err
	}
	found, err := o.Store.ListInvoices(ctx, of, before, in.Limit+1)
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	all := make([]InvoiceSummary, 0, len(found))
	for _, is := range found {
		all = append(all, summaryOf(is))
	}
	list := InvoicePage{List: page.Of(in.Query, all, func(s InvoiceSummary) string { return strconv.FormatInt(s.Number, 10) })}
	switch {
	case in.Cursor != "":
	case tenant != "":
		// Of a month before it was created, a tenant sees no draft of an earlier one.
		list.Draft, list.NoDraft, err = o.draft(ctx, tenant, of.TenantUID, in.Month)
	case in.Month != "":
		list.Unclosed, err = o.unclosedIn(ctx, in.Month)
	}
	return &answer[InvoicePage]{list}, err
}

// position returns the number of the last invoice of the page before, 0 for the first page.
func position(q page.Query) (int64, error) {
	key, err := q.Key()
	if err != nil || key == "" {
		return 0, err
	}
	number, err := strconv.ParseInt(key, 10, 64)
	if err != nil || number < 1 {
		return 0, problem.New(problem.BadRequest, "The cursor is not one that this list answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor of this list"})
	}
	return number, nil
}

func (o *Operations) unclosedIn(ctx context.Context, named string) ([]Unclosed, error) {
	month, err := monthOf(named, "query.month")
	if err != nil {
		return nil, err
	}
	return o.unclosed(ctx, month)
}

// draft returns what the invoice of a month would be, by default of the running one; nil, and why, if there is none. A month that has an invoice has no draft. It is that of the tenant with the UID, or of
// who pays if that is "".
func (o *Operations) draft(ctx context.Context, tenant, uid, named string) (*DraftInvoice, string, error) {
	now := store.Time(o.Now())
	month := billing.MonthOf(now)
	if named != "" {
		var err error
		if month, err = monthOf(named, "query.month"); err != nil {
			return nil, "", err
		}
	}
	switch {
	case !month.Start().Before(now):
		return nil, "The month has not begun.", nil
	case forgotten(month, now):
		return nil, "Usage of the month is not kept any more.", nil
	}
	of, err := o.payerOf(ctx, tenant, month, uid)
	var refused *problem.Problem
	switch {
	case notFound(err):
		return nil, "There is no such tenant.", nil
	case errors.As(err, &refused) && refused.Code == problem.Conflict:
		return nil, refused.Detail, nil
	case err != nil:
		return nil, "", err
	}
	closed, err := o.closed(ctx, of, month)
	switch {
	case err != nil || closed:
		return nil, "", err
	case !of.in(month):
		return nil, absent(tenant, month).Detail, nil
	}
	return o.draftOf(ctx, of, month)
}

// draftOf computes the draft of a month that has no invoice.
func (o *Operations) draftOf(ctx context.Context, of *payer, month billing.Month) (*DraftInvoice, string, error) {
	now := store.Time(o.Now())
	prices, why, err := o.pricesFor(ctx, of)
	if err != nil || prices == nil {
		return nil, why, err
	}
	c, err := o.compute(ctx, of, month, prices)
	var refused *problem.Problem
	if errors.As(err, &refused) && refused.Code == problem.Conflict {
		return nil, refused.Detail, nil
	}
	if err != nil {
		return nil, "", err
	}
	draft := &DraftInvoice{Computed: now, Invoice: *c.invoice}
	if of.until.Equal(endless) { // One that is gone uses nothing any more.
		draft.Forecast, err = c.forecast(now)
	}
	return draft, "", err
}

// closed reports whether a tenant has an invoice of a month. Only a month that has one has credit notes.
func (o *Operations) closed(ctx context.Context, of *payer, month billing.Month) (bool, error) {
	found, err := o.Store.ListInvoices(ctx, store.InvoiceFilter{Tenant: of.Name, TenantUID: of.UID, Month: month.String()}, 0, 1)
	if err != nil {
		return false, problem.FromStore(ctx, err)
	}
	return len(found) > 0, nil
}
