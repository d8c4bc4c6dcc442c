// Package invoices has the operations about prices, invoices and credit notes. docs/api/invoices.md says what they do, and docs/cost.md how an invoice is computed.
package invoices

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/inflight"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// Store keeps invoices, who pays for usage, alerts, and requests with an Idempotency-Key.
type Store interface {
	store.Invoices
	store.Payers
	store.Alerts
	store.Requests
}

// Operations are the operations of this package.
type Operations struct {
	Store Store
	// Used calls do with what a tenant used, by place and hour, from the beginning of one hour to before that of another.
	Used func(ctx context.Context, tenant string, from, until time.Time, do func(store.Used) error) error
	// Gaps returns the hours in which something was not measured all the time.
	Gaps func(ctx context.Context, from, until time.Time) ([]billing.Gap, error)
	// Tenant returns the tenant that has a name now, and what to answer if there is none.
	Tenant func(ctx context.Context, name string) (store.TenantRef, error)
	// PriceLists returns all price lists, by name.
	PriceLists func(ctx context.Context) ([]billing.Prices, error)
	// PricesOf returns the price list that holds for a tenant; nil, and why, if there is none.
	PricesOf func(ctx context.Context, tenant string) (prices *billing.Prices, why string, err error)
	// PricesNamed returns the price list of a name, and the default one if it is ""; nil, and why, if there is none.
	PricesNamed func(ctx context.Context, name string) (prices *billing.Prices, why string, err error)
	Now         func() time.Time
	// Turns limits how many invoices are computed at a time, see NewTurns.
	Turns *inflight.Limiter
}

// NewTurns returns the limit of how many invoices are computed at a time: each reads a month of usage.
func NewTurns() *inflight.Limiter {
	return inflight.New(inflight.Limits{Tenant: 1, All: 2, Waiting: 8, Wait: 5 * time.Second})
}

// InvoiceSummary is an invoice or a credit note without its lines.
type InvoiceSummary struct {
	Number   int64     `json:"number" doc:"Invoices and credit notes of all tenants have one series without gaps, from 1 on."`
	Kind     string    `json:"kind" enum:"invoice,credit-note"`
	Tenant   string    `json:"tenant"`
	UID      string    `json:"tenantUID" doc:"The UID of the Tenant that pays: another one of the same name has another."`
	Month    string    `json:"month" doc:"A calendar month in UTC." example:"2026-11"`
	Currency string    `json:"currency" example:"EUR"`
	Net      string    `json:"net" doc:"It is negative on a credit note, as total is."`
	Total    string    `json:"total"`
	Closed   time.Time `json:"closed"`
	Credits  int64     `json:"credits,omitempty" doc:"Of a credit note: the number of the invoice that it is about."`
}

// Invoice is an invoice or a credit note. It never changes.
type Invoice struct {
	Number   int64     `json:"number" doc:"Invoices and credit notes of all tenants have one series without gaps, from 1 on."`
	Kind     string    `json:"kind" enum:"invoice,credit-note"`
	Closed   time.Time `json:"closed"`
	ClosedBy string    `json:"closedBy" doc:"The id of the caller who closed the month, or made the credit note."`
	Credits  int64     `json:"credits,omitempty" doc:"Of a credit note: the number of the invoice that it is about. Its amounts are negative, and it has no lines."`
	Reason   string    `json:"reason,omitempty" doc:"Why there is the credit note."`
	UID      string    `json:"tenantUID" doc:"The UID of the Tenant that pays: another one of the same name has another."`
	billing.Invoice
}

// The kinds of what has a number.
const (
	ofMonth    = "invoice"
	creditNote = "credit-note"
)

func kindOf(is *store.Invoice) string {
	if is.Credits != 0 {
		return creditNote
	}
	return ofMonth
}

func summaryOf(is store.Invoice) InvoiceSummary {
	return InvoiceSummary{
		Number: is.Number, Kind: kindOf(&is), Tenant: is.Tenant, UID: is.TenantUID, Month: is.Month, Currency: is.Currency, Net: is.Net, Total: is.Total, Closed: is.Closed, Credits: is.Credits,
	}
}

func invoiceOf(is *store.Invoice) (Invoice, error) {
	invoice := Invoice{Number: is.Number, Kind: kindOf(is), Closed: is.Closed, ClosedBy: is.ClosedBy, Credits: is.Credits, Reason: is.Reason, UID: is.TenantUID}
	if err := json.Unmarshal(is.Body, &invoice.Invoice); err != nil {
		return invoice, fmt.Errorf("reading the invoice %d: %w", is.Number, err)
	}
	return invoice, nil
}

// standing returns a tenant's last invoice of a month, and what credit notes left of its net sum; nil if there is none.
func standing(all []store.Invoice, uid string) (is *store.Invoice, left *big.Rat) {
	for i := range all {
		net, ok := new(big.Rat).SetString(all[i].Net)
		switch {
		case !ok: // Each is written by this package.
		case all[i].Credits == 0 && all[i].TenantUID == uid:
			is, left = &all[i], net
		case is != nil && all[i].Credits == is.Number:
			left.Add(left, net)
		}
	}
	return is, left
}

// ofPlatform reports whether the caller may read the invoices of all tenants.
func ofPlatform(caller auth.Caller) bool {
	return caller.Grant.May(access.Invoices, access.Read, "", "")
}

// find returns an invoice that the caller may read. Others are not found, and those of an earlier tenant of the name only by administrators of the platform.
func (o *Operations) find(ctx context.Context, in NumberInput) (store.Invoice, error) {
	caller := auth.Of(ctx)
	number, err := strconv.ParseInt(in.Number, 10, 64)
	if err != nil { // The pattern of the parameter allows none of these.
		return store.Invoice{}, problem.New(problem.NotFound, "")
	}
	is, err := o.Store.GetInvoice(ctx, number)
	if err != nil {
		return is, problem.FromStore(ctx, err)
	}
	if ofPlatform(caller) {
		return is, nil
	}
	if !caller.Grant.May(access.Invoices, access.Read, is.Tenant, "") {
		return is, problem.New(problem.NotFound, "")
	}
	tenant, err := o.Tenant(ctx, is.Tenant)
	if err == nil && tenant.UID != is.TenantUID {
		err = problem.New(problem.NotFound, "")
	}
	return is, err
}

// place returns the tenant of a list, "" for all. A tenant that the caller may not read is not found.
func place(caller auth.Caller, named string, resource access.Resource) (string, error) {
	if named != "" && !caller.Grant.May(resource, access.Read, named, "") {
		return "", problem.New(problem.NotFound, "")
	}
	tenant, refused := caller.Place(named, resource)
	if refused != nil {
		return "", refused
	}
	return tenant, nil
}

// mayWrite refuses who may not close months and credit invoices of a tenant.
func mayWrite(caller auth.Caller, tenant string) error {
	switch {
	case caller.Grant.May(access.Invoices, access.Create, tenant, ""):
		return nil
	case caller.Grant.May(access.Invoices, access.Read, tenant, ""):
		return problem.New(problem.Forbidden, "")
	}
	return problem.New(problem.NotFound, "")
}
