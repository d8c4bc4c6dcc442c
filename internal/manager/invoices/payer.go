package invoices

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// payer is a tenant that pays, with the hours of which it pays what its name used.
type payer struct {
	store.Payer
	from, until time.Time
}

// endless is the end of the hours of a tenant that exists.
var endless = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// in reports whether an hour of a month is the payer's own.
func (p *payer) in(month billing.Month) bool {
	return p.from.Before(p.until) && p.from.Before(month.End()) && month.Start().Before(p.until)
}

// withHours returns the payers of one name, in the order of creation, with their hours: from that in which the Tenant was created to that in which it was found to be gone, and both completely. Nobody
// pays for an hour in which one ended and the next one was created, because usage of an hour goes by the name.
func withHours(all []store.Payer) []payer {
	all = slices.SortedStableFunc(slices.Values(all), byCreation)
	of := make([]payer, len(all))
	for i, p := range all {
		of[i] = payer{p, p.Created.UTC().Truncate(time.Hour), endless}
		if !p.Gone.IsZero() {
			of[i].until = p.Gone.UTC().Truncate(time.Hour).Add(time.Hour)
		}
		if i > 0 && of[i].from.Before(of[i-1].until) {
			of[i-1].until, of[i].from = of[i].from, of[i].from.Add(time.Hour)
		}
	}
	return of
}

// byCreation compares payers of one name. Tenants are created at whole seconds: of two of the same second the one that is gone came first.
func byCreation(a, b store.Payer) int {
	exists := func(p store.Payer) int {
		if p.Gone.IsZero() {
			return 1
		}
		return 0
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(exists(a), exists(b)), cmp.Compare(a.UID, b.UID))
}

// payersOf returns the payers of a name, in the order of creation. If a Tenant has it now, that is the last one, and exists is true. While the index still has one that another manager knows to be replaced, the
// answer is that the index is behind.
func (o *Operations) payersOf(ctx context.Context, name string) (all []payer, exists bool, err error) {
	is, err := o.Tenant(ctx, name)
	exists = err == nil
	if err != nil && !notFound(err) {
		return nil, false, err
	}
	recorded, err := o.Store.ListPayers(ctx, name)
	if err != nil {
		return nil, false, problem.FromStore(ctx, err)
	}
	if exists && !slices.ContainsFunc(recorded, func(p store.Payer) bool { return p.UID == is.UID }) {
		recorded = append(recorded, store.Payer{TenantRef: is})
	}
	all = withHours(recorded)
	if !exists {
		return all, false, nil
	}
	last := &all[len(all)-1]
	if last.UID != is.UID {
		return nil, true, problem.New(problem.Unavailable, "The manager does not know the present tenant of the name yet.").After(5 * time.Second)
	}
	last.Gone, last.until = time.Time{}, endless
	return all, true, nil
}

// payerOf returns who pays for a month: the Tenant with the UID or, if that is "", the last one that had the name in the month, else the one that has it now.
func (o *Operations) payerOf(ctx context.Context, name string, month billing.Month, uid string) (*payer, error) {
	all, exists, err := o.payersOf(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(all) {
		if uid != "" && p.UID == uid || uid == "" && p.in(month) {
			return &p, nil
		}
	}
	switch {
	case uid != "" || len(all) == 0:
		return nil, problem.New(problem.NotFound, "")
	case exists:
		return &all[len(all)-1], nil
	}
	return nil, absent(name, month)
}

// absent says that a tenant has no hour of a month.
func absent(name string, month billing.Month) *problem.Problem {
	return problem.New(problem.Conflict, fmt.Sprintf("Tenant %s was not there in %s.", name, month))
}

// pricesFor returns the price list that holds for a payer: of one that is gone that which it named last.
func (o *Operations) pricesFor(ctx context.Context, p *payer) (*billing.Prices, string, error) {
	if is, err := o.Tenant(ctx, p.Name); err == nil && is.UID == p.UID {
		return o.PricesOf(ctx, p.Name)
	}
	return o.PricesNamed(ctx, p.PriceList)
}

func notFound(err error) bool {
	var refused *problem.Problem
	return errors.As(err, &refused) && refused.Code == problem.NotFound
}

// Unclosed is a tenant that has no invoice of a month in which it was there.
type Unclosed struct {
	Tenant string     `json:"tenant"`
	UID    string     `json:"uid" doc:"The UID of the Tenant: another one of the same name has another."`
	Gone   *time.Time `json:"gone,omitempty" doc:"When a manager found that the Tenant does not exist any more. It is not there while it exists."`
}

// unclosed returns the tenants without an invoice of a month, by name and creation.
func (o *Operations) unclosed(ctx context.Context, month billing.Month) ([]Unclosed, error) {
	recorded, err := o.Store.ListPayers(ctx, "")
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	closed, err := o.closedBy(ctx, month)
	if err != nil {
		return nil, err
	}
	var all []Unclosed
	for len(recorded) > 0 {
		n := 1
		for n < len(recorded) && recorded[n].Name == recorded[0].Name {
			n++
		}
		for _, p := range withHours(recorded[:n]) {
			if closed[p.UID] || !p.in(month) {
				continue
			}
			is := Unclosed{Tenant: p.Name, UID: p.UID}
			if !p.Gone.IsZero() {
				is.Gone = &p.Gone
			}
			all = append(all, is)
		}
		recorded = recorded[n:]
	}
	return all, nil
}

// closedBy returns the UIDs of the tenants that have an invoice of a month.
func (o *Operations) closedBy(ctx context.Context, month billing.Month) (map[string]bool, error) {
	const batch = 1000
	closed := map[string]bool{}
	for before := int64(0); ; {
		some, err := o.Store.ListInvoices(ctx, store.InvoiceFilter{Month: month.String()}, before, batch)
		if err != nil {
			return nil, problem.FromStore(ctx, err)
		}
		for _, is := range some {
			closed[is.TenantUID], before = true, is.Number
		}
		if len(some) < batch {
			return closed, nil
		}
	}
}
