package invoices

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// young is how long after the beginning of a month, or after the creation of the tenant, the forecast does not count: it would go on from a few hours.
	young = 24 * time.Hour
	// budgetTimeout is how long the cost of one tenant may take.
	budgetTimeout = time.Minute
)

// The bases of an alert.
const (
	actual   = "actual"
	forecast = "forecast"
)

// usualThresholds are those of a budget that has none.
var usualThresholds = []int32{80, 100}

// Budgets alerts when the cost of the running month, or its forecast, reaches a threshold of a tenant's cost budget.
type Budgets struct {
	*Operations
	// Reader reads the Tenants, from caches, and Following returns nil while they follow the cluster.
	Reader    client.Reader
	Following func(context.Context) error
	// Tell creates a Kubernetes event on the Tenant.
	Tell func(context.Context, *v1alpha1.Tenant, Alert) error
	// Metric is that of NewMetric. Only the manager that computes the costs reports it.
	Metric *prometheus.GaugeVec

	// reported has what the values in the metric are of, by the names of tenants.
	reported map[string]reported
}

// reported is a Tenant and a month.
type reported struct {
	uid   types.UID
	month billing.Month
}

// NewMetric returns the metric of budgets, without a value.
func NewMetric() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kubeop_manager_cost_budget_ratio", Help: "What the usage of a tenant in the running month costs, in proportion to its cost budget: 1 is all of it. The basis is actual or forecast.",
	}, []string{"tenant", "basis"})
}

// Alert says that a cost reached a threshold of a budget.
type Alert struct {
	Tenant   string `json:"tenant"`
	Month    string `json:"month"`
	Currency string `json:"currency"`
	// Budget is the amount of the budget, and Threshold a percentage of it.
	Budget    string `json:"budget"`
	Threshold int32  `json:"threshold"`
	// Basis is actual, of the usage so far, or forecast. Net is what that costs without taxes.
	Basis string `json:"basis"`
	Net   string `json:"net"`
}

// String says it in a sentence.
func (a Alert) String() string {
	cost := fmt.Sprintf("The usage in %s costs %s %s so far", a.Month, a.Net, a.Currency)
	if a.Basis == forecast {
		cost = fmt.Sprintf("The usage in %s is going to cost %s %s", a.Month, a.Net, a.Currency)
	}
	return fmt.Sprintf("%s without taxes, and reaches %d %% of spec.costBudget, which is %s %s.", cost, a.Threshold, a.Budget, a.Currency)
}

// Forget removes the metric of all tenants: another manager reports it from now on.
func (b *Budgets) Forget() {
	b.Metric.Reset()
	b.reported = nil
}

// Round compares the cost of each tenant with its budget. A tenant whose cost cannot be computed keeps none of the others from it, and keeps its values in the metric until the month ends.
func (b *Budgets) Round(ctx context.Context) error {
	if b.Following(ctx) != nil { // /readyz names it.
		return nil
	}
	var found v1alpha1.TenantList
	if err := b.Reader.List(ctx, &found, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var all []error
	budgets := map[string]types.UID{}
	for i := range found.Items {
		t := &found.Items[i]
		if t.Spec.CostBudget == nil || t.Name == v1alpha1.PlatformTenant {
			continue
		}
		budgets[t.Name] = t.UID
		if err := b.compare(ctx, t); err != nil {
			all = append(all, fmt.Errorf("tenant %s: %w", t.Name, err))
		}
	}
	month := billing.MonthOf(store.Time(b.Now()))
	for name, of := range b.reported {
		if uid, has := budgets[name]; !has || of != (reported{uid, month}) {
			b.Metric.DeletePartialMatch(prometheus.Labels{"tenant": name})
			delete(b.reported, name)
		}
	}
	return errors.Join(all...)
}

// compare compares the cost of a tenant with its budget, and reports the proportion of both.
func (b *Budgets) compare(ctx context.Context, t *v1alpha1.Tenant) error {
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()
	month := billing.MonthOf(store.Time(b.Now()))
	of, err := b.payerOf(ctx, t.Name, month, string(t.UID))
	if err != nil {
		return err
	}
	draft, why, err := b.draftOf(ctx, of, month)
	switch {
	case err != nil:
		return err
	case draft == nil:
		return errors.New(strings.TrimSuffix(why, "."))
	}
	budget := t.Spec.CostBudget.Amount.Rat()
	if budget.Sign() <= 0 {
		return errors.New("spec.costBudget.amount is not more than 0")
	}
	about := Alert{Tenant: t.Name, Month: month.String(), Currency: draft.Currency, Budget: string(t.Spec.CostBudget.Amount), Basis: actual, Net: draft.Net}
	costs := []Alert{about}
	since := month.Start()
	if of.Created.After(since) {
		since = of.Created
	}
	if draft.Forecast != nil && !store.Time(b.Now()).Before(since.Add(young)) {
		about.Basis, about.Net = forecast, draft.Forecast.Net
		costs = append(costs, about)
	}
	b.report(reported{t.UID, month}, costs, budget)
	var failed []error
	reached := new(big.Rat)
	for _, cost := range costs {
		ratio := cost.ratio(budget)
		failed = append(failed, b.alert(ctx, t, cost, [2]*big.Rat{reached, ratio}))
		reached = ratio
	}
	return errors.Join(failed...)
}

// report sets the metric of a tenant.
func (b *Budgets) report(of reported, costs []Alert, budget *big.Rat) {
	tenant := costs[0].Tenant
	for _, cost := range costs {
		ratio, _ := cost.ratio(budget).Float64()
		b.Metric.WithLabelValues(tenant, cost.Basis).Set(ratio)
	}
	if len(costs) == 1 { // There is no forecast, as on the first day of a month.
		b.Metric.DeleteLabelValues(tenant, forecast)
	}
	if b.reported == nil {
		b.reported = map[string]reported{}
	}
	b.reported[tenant] = of
}

// ratio returns the cost in proportion to a budget.
func (a *Alert) ratio(budget *big.Rat) *big.Rat {
	net, ok := new(big.Rat).SetString(a.Net)
	if !ok { // billing wrote it.
		return new(big.Rat)
	}
	return net.Quo(net, budget)
}

// alert alerts of each threshold between two proportions of a budget, the second one included, once in a month: a forecast alerts of what the cost so far has not reached. Another amount of the budget counts
// anew.
func (b *Budgets) alert(ctx context.Context, t *v1alpha1.Tenant, cost Alert, between [2]*big.Rat) error {
	thresholds := t.Spec.CostBudget.Thresholds
	if len(thresholds) == 0 {
		thresholds = usualThresholds
	}
	for _, threshold := range thresholds {
		if at := big.NewRat(int64(threshold), 100); between[0].Cmp(at) >= 0 || between[1].Cmp(at) < 0 {
			continue
		}
		cost.Threshold = threshold
		now := store.Time(b.Now())
		id, body, err := eventtype.Encode(eventtype.BudgetReached, now, cost)
		if err != nil {
			return err
		}
		key := fmt.Sprintf("budget/%s/%s/%s/%s/%d", t.UID, cost.Month, cost.Budget, cost.Basis, threshold)
		first, err := b.Store.RecordAlert(ctx, key, store.Message{ID: id, Type: eventtype.BudgetReached, Tenant: t.Name, TenantUID: string(t.UID), Object: "budget/" + t.Name, At: now, Body: body})
		if err != nil {
			return err
		}
		if !first {
			continue
		}
		if err := b.Tell(ctx, t, cost); err != nil {
			return fmt.Errorf("creating an event: %w", err)
		}
	}
	return nil
}
