package invoices

import (
	"context"
	"slices"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/page"
)

// prices answers all price lists, or the one that holds for a tenant, with the discounts of that tenant only: those of others are not its business.
func (o *Operations) prices(ctx context.Context, in *page.OfTenant) (*answer[page.List[billing.Prices]], error) {
	tenant, err := place(auth.Of(ctx), in.Tenant, access.Prices)
	if err != nil {
		return nil, err
	}
	var all []billing.Prices
	if tenant == "" {
		all, err = o.PriceLists(ctx)
	} else {
		all, err = o.pricesOf(ctx, tenant)
	}
	if err != nil {
		return nil, err
	}
	after, err := in.Key()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p billing.Prices) bool { return p.Name <= after })
	return &answer[page.List[billing.Prices]]{page.Of(in.Query, all[:min(len(all), in.Limit+1)], func(p billing.Prices) string { return p.Name })}, nil
}

func (o *Operations) pricesOf(ctx context.Context, tenant string) ([]billing.Prices, error) {
	of, _, err := o.PricesOf(ctx, tenant)
	if err != nil || of == nil {
		return nil, err
	}
	of.Spec.Discounts = slices.DeleteFunc(of.Spec.Discounts, func(d v1alpha1.PriceDiscount) bool { return d.Tenant != tenant })
	return []billing.Prices{*of}, nil
}
