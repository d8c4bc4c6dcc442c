package live

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// PriceLists returns all price lists, by name, whoever asks.
func (o *Operations) PriceLists(ctx context.Context) (all []billing.Prices, err error) {
	if err := o.ready(ctx); err != nil {
		return nil, err
	}
	for _, item := range o.Index.Page(allPriceLists, "", math.MaxInt, func(string) bool { return true }) {
		list, err := decode[billing.Prices](ctx, item)
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, nil
}

// PricesOf returns the price list that holds for a tenant: the one that it names, else the default one. If there is none, it is nil, and
// why says so. If there is no such tenant, the error is what to answer.
func (o *Operations) PricesOf(ctx context.Context, tenant string) (of *billing.Prices, why string, err error) {
	item, err := o.get(ctx, allTenants, tenant)
	if err != nil {
		return nil, "", err
	}
	is, err := decode[Tenant](ctx, item)
	if err != nil {
		return nil, "", err
	}
	return o.PricesNamed(ctx, is.PriceList)
}

// PricesNamed is PricesOf for a tenant that names a list, "" for none.
func (o *Operations) PricesNamed(ctx context.Context, named string) (of *billing.Prices, why string, err error) {
	all, err := o.PriceLists(ctx)
	if err != nil {
		return nil, "", err
	}
	for i := range all {
		switch {
		case named != "" && all[i].Name == named:
			return &all[i], "", nil
		case named != "" || !all[i].Spec.Default:
		case of != nil:
			return nil, "Two price lists have default: true.", nil
		default:
			of = &all[i]
		}
	}
	switch {
	case named != "":
		why = fmt.Sprintf("There is no price list %s, which spec.priceList of the tenant names.", named)
	case of == nil:
		why = "The tenant names no price list in spec.priceList, and no price list has default: true."
	}
	return of, why, nil
}

// decode reads the answer about an object.
func decode[T any](ctx context.Context, item *index.Item) (is T, err error) {
	if err := json.Unmarshal(item.Body, &is); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Reading the answer about an object", "name", item.Name)
		return is, problem.New(problem.Internal, "")
	}
	return is, nil
}
