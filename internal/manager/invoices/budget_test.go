package invoices

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// budgeted is a cluster with tenants, and what they used.
type budgeted struct {
	*testing.T
	store   store.Store
	cluster client.Client
	now     time.Time
	// used are core-hours, by tenant and hour; a core-hour is 1 EUR.
	used map[string]map[time.Time]int64
	// told are the events on the tenants.
	told   []string
	untold error
}

func newBudgeted(t *testing.T) *budgeted {
	t.Helper()
	b := &budgeted{T: t, store: newStore(t), cluster: newCluster(t), now: at(11, 0, 30), used: map[string]map[time.Time]int64{"acme": {}, "beta": {}}}
	for id, tenant := range map[string]string{"own": "acme", "platform": ""} {
		w := store.Webhook{ID: id, Tenant: tenant, TenantUID: map[string]string{"acme": "1"}[tenant], Types: []string{"budget.*"}, Created: b.now, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: id, Data: []byte("x")}}
		if err := b.store.CreateWebhook(t.Context(), w, store.Event{At: b.now}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// budget sets the budget of a tenant, which is created with its UID if it is not there.
func (b *budgeted) budget(name, uid, amount string, thresholds ...int32) {
	b.Helper()
	is := &v1alpha1.Tenant{}
	err := b.cluster.Get(b.Context(), client.ObjectKey{Name: name}, is)
	if err == nil {
		is.Spec.CostBudget = &v1alpha1.CostBudget{Amount: v1alpha1.Decimal(amount), Thresholds: thresholds}
		err = b.cluster.Update(b.Context(), is)
	} else if is = tenantOf(name, uid, ""); client.IgnoreNotFound(err) == nil {
		is.Spec.CostBudget = &v1alpha1.CostBudget{Amount: v1alpha1.Decimal(amount), Thresholds: thresholds}
		err = b.cluster.Create(b.Context(), is)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// manager is one that has just started.
func (b *budgeted) manager() *Budgets {
	prices := func(context.Context, string) (*billing.Prices, string, error) {
		return &billing.Prices{Name: "standard", Spec: &v1alpha1.PriceListSpec{Currency: "EUR", Meters: []v1alpha1.PriceMeter{
			{Name: meter.CPURequested, Unit: "core-hour", Periods: []v1alpha1.PricePeriod{{From: "2026-01-01", Tiers: []v1alpha1.PriceTier{{Price: "1"}}}}},
		}}}, "", nil
	}
	return &Budgets{
		Metric: NewMetric(),
		Operations: &Operations{
			Store: b.store, Now: func() time.Time { return b.now }, Turns: NewTurns(), PricesOf: prices, PricesNamed: prices,
			Tenant: func(ctx context.Context, name string) (store.TenantRef, error) {
				is := &v1alpha1.Tenant{}
				if b.cluster.Get(ctx, client.ObjectKey{Name: name}, is) != nil {
					return store.TenantRef{}, problem.New(problem.NotFound, "")
				}
				return store.TenantRef{Name: name, UID: string(is.UID)}, nil
			},
			Gaps: func(context.Context, time.Time, time.Time) ([]billing.Gap, error) { return nil, nil },
			Used: func(_ context.Context, tenant string, from, until time.Time, do func(store.Used) error) error {
				for hour, cores := range b.used[tenant] {
					if hour.Before(from) || !hour.Before(until) {
						continue
					}
					if err := do(store.Used{Hour: hour, Amounts: store.Amounts{meter.CPURequested: meter.Of(big.NewInt(3600*cores), 0)}}); err != nil {
						return err
					}
				}
				return nil
			},
		},
		Reader: b.cluster, Following: func(context.Context) error { return nil },
		Tell: func(_ context.Context, t *v1alpha1.Tenant, alert Alert) error {
			b.told = append(b.told, fmt.Sprintf("%s %s %d", t.Name, alert.Basis, alert.Threshold))
			return b.untold
		},
	}
}

// expect runs a round, and compares the events since the last one.
func (b *budgeted) expect(m *Budgets, what string, want ...string) {
	b.Helper()
	b.told = nil
	if err := m.Round(b.Context()); err != nil {
		b.Errorf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, b.told); diff != "" {
		b.Errorf("%s: -want +told:\n%s", what, diff)
	}
}

func (b *budgeted) messages(webhook string) (all []string) {
	b.Helper()
	found, err := b.store.ListDeliveries(b.Context(), webhook, "", 0, 100)
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range slices.Backward(found) {
		all = append(all, d.Object+" "+string(d.Body))
	}
	return all
}

// TestEachThresholdIsAlertedOnceInAMonth, by whichever manager, of the cost and of its forecast.
func TestEachThresholdIsAlertedOnceInAMonth(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "200.00")
	m := b.manager()
	b.used["acme"][at(3, 5, 0)] = 159
	b.expect(m, "below all thresholds")
	b.used["acme"][at(3, 6, 0)] = 1
	b.expect(m, "the first threshold", "acme actual 80")
	b.expect(b.manager(), "another manager")
	for hour := range 24 { // 480 more hours of 1 are left.
		b.used["acme"][at(10, hour, 0)] = 1
	}
	b.expect(m, "the forecast, of what the cost has not reached", "acme forecast 100")
	b.used["acme"][at(3, 7, 0)] = 20
	b.expect(m, "all of the budget", "acme actual 100")
	b.budget("acme", "1", "400", 50, 160)
	b.expect(m, "another budget", "acme actual 50", "acme forecast 160")
	b.now = time.Date(2026, 12, 1, 0, 30, 0, 0, time.UTC)
	b.expect(m, "the next month")
	b.used["acme"][time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)] = 200
	b.expect(m, "the next month", "acme actual 50")
	all := b.messages("own")
	if diff := cmp.Diff(b.messages("platform"), all); diff != "" || len(all) != 6 {
		t.Errorf("%d messages, -platform +tenant:\n%s", len(all), diff)
	}
	for n, want := range map[int]string{
		0: `budget/acme {"type":"budget.reached","timestamp":"2026-11-11T00:30:00Z","data":{"tenant":"acme","month":"2026-11","currency":"EUR","budget":"200.00","threshold":80,"basis":"actual","net":"160.00"}}`,
		1: `budget/acme {"type":"budget.reached","timestamp":"2026-11-11T00:30:00Z","data":{"tenant":"acme","month":"2026-11","currency":"EUR","budget":"200.00","threshold":100,"basis":"forecast","net":"664.00"}}`,
	} {
		if diff := cmp.Diff(want, all[min(n, len(all)-1)]); diff != "" {
			t.Errorf("-want +message:\n%s", diff)
		}
	}
}

// TestAForecastOfAFewHoursAlertsNobody: before a day of the month has ended.
func TestAForecastOfAFewHoursAlertsNobody(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "100", 100)
	b.used["acme"][at(1, 0, 0)] = 1
	m := b.manager()
	b.now = at(1, 1, 0)
	b.expect(m, "after an hour")
	b.now = at(1, 23, 59)
	b.expect(m, "within the first day")
	for hour := range 24 {
		b.used["acme"][at(1, hour, 0)] = 1
	}
	b.now = at(2, 0, 0)
	b.expect(m, "after the first day", "acme forecast 100")
}

// TestAForecastOfAYoungTenantAlertsNobody: before a day since its creation has ended.
func TestAForecastOfAYoungTenantAlertsNobody(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "100", 100)
	for hour := range 48 {
		b.used["acme"][at(10, 0, 0).Add(time.Duration(hour)*time.Hour)] = 1
	}
	m := b.manager()
	m.Tenant = func(context.Context, string) (store.TenantRef, error) {
		return store.TenantRef{Name: "acme", UID: "1", Created: at(10, 6, 30)}, nil
	}
	b.now = at(11, 6, 29)
	b.expect(m, "within the first day")
	b.now = at(11, 6, 30)
	b.expect(m, "after the first day", "acme forecast 100")
}

// TestTheMetricHasTheProportionOfEachBudget: of tenants with a budget only, and by one manager.
func TestTheMetricHasTheProportionOfEachBudget(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "200")
	b.used["acme"][at(3, 5, 0)] = 50
	m := b.manager()
	b.expect(m, "a quarter")
	for basis, want := range map[string]float64{actual: 0.25, forecast: 0.25} {
		if got := testutil.ToFloat64(m.Metric.WithLabelValues("acme", basis)); got != want {
			t.Errorf("%s is %v, want %v", basis, got, want)
		}
	}
	if err := b.cluster.Delete(t.Context(), tenantOf("acme", "1", "")); err != nil {
		t.Fatal(err)
	}
	b.expect(m, "without the tenant")
	if n := testutil.CollectAndCount(m.Metric); n != 0 {
		t.Errorf("there are %d values of a tenant that is gone", n)
	}
	b.budget("acme", "2", "200")
	b.expect(m, "the next tenant")
	m.Forget()
	if n := testutil.CollectAndCount(m.Metric); n != 0 {
		t.Errorf("there are %d values after another manager took over", n)
	}
}

// values returns the metric, by tenant and basis.
func (b *budgeted) values(m *Budgets) map[string]float64 {
	b.Helper()
	all, collected := map[string]float64{}, make(chan prometheus.Metric, 10)
	m.Metric.Collect(collected)
	close(collected)
	for each := range collected {
		var is dto.Metric
		if err := each.Write(&is); err != nil {
			b.Fatal(err)
		}
		all[is.GetLabel()[1].GetValue()+" "+is.GetLabel()[0].GetValue()] = is.GetGauge().GetValue()
	}
	return all
}

// TestTheMetricStaysWhileACostIsNotKnown: during a round it has no fewer values than before, and after it those of the same tenants, until the month ends.
func TestTheMetricStaysWhileACostIsNotKnown(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "200", 1000)
	b.budget("beta", "2", "200", 1000)
	b.used["acme"][at(3, 5, 0)], b.used["beta"][at(3, 5, 0)] = 50, 100
	m := b.manager()
	round := func(what string, fails bool, want map[string]float64) {
		t.Helper()
		if err := m.Round(t.Context()); (err != nil) != fails {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, b.values(m)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	all := map[string]float64{"acme actual": 0.25, "acme forecast": 0.25, "beta actual": 0.5, "beta forecast": 0.5}
	round("the first one", false, all)
	used := m.Used
	m.Used = func(ctx context.Context, tenant string, from, until time.Time, do func(store.Used) error) error {
		if n := len(b.values(m)); n != len(all) {
			t.Errorf("during a round there are %d values", n)
		}
		return used(ctx, tenant, from, until, do)
	}
	b.used["acme"][at(3, 5, 0)], b.used["beta"][at(3, 5, 0)] = -1, 150
	round("one cost is not known", true, map[string]float64{"acme actual": 0.25, "acme forecast": 0.25, "beta actual": 0.75, "beta forecast": 0.75})
	b.now, m.Used = time.Date(2026, 12, 1, 0, 30, 0, 0, time.UTC), used
	b.used["acme"][time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)] = -1
	round("the next month", true, map[string]float64{"beta actual": 0})
}

// TestTheMetricOfAFormerTenantIsNotThatOfTheNext, whose cost is not known.
func TestTheMetricOfAFormerTenantIsNotThatOfTheNext(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "200")
	b.used["acme"][at(3, 5, 0)] = 50
	m := b.manager()
	b.expect(m, "a quarter")
	if err := b.cluster.Delete(t.Context(), tenantOf("acme", "1", "")); err != nil {
		t.Fatal(err)
	}
	b.budget("acme", "2", "200")
	b.used["acme"][at(3, 5, 0)] = -1
	if err := m.Round(t.Context()); err == nil || len(b.values(m)) != 0 {
		t.Errorf("%v: the next tenant has %v", err, b.values(m))
	}
}

// TestATenantWhoseCostIsNotKnownKeepsOthersFromNothing, and neither does an event that cannot be created.
func TestATenantWhoseCostIsNotKnownKeepsOthersFromNothing(t *testing.T) {
	b := newBudgeted(t)
	b.budget("acme", "1", "100")
	b.budget("beta", "2", "100")
	b.used["acme"][at(3, 5, 0)], b.used["beta"][at(3, 5, 0)] = -1, 80
	m := b.manager()
	err := m.Round(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tenant acme: ") || strings.Contains(err.Error(), "beta") {
		t.Errorf("what fails is %v", err)
	}
	if diff := cmp.Diff([]string{"beta actual 80"}, b.told); diff != "" {
		t.Errorf("-want +told:\n%s", diff)
	}
	b.untold, b.used["acme"][at(3, 5, 0)] = errors.New("forbidden"), 80
	if err := m.Round(t.Context()); !errors.Is(err, b.untold) {
		t.Errorf("an event that is refused: %v", err)
	}
	if got := b.messages("own"); len(got) != 1 {
		t.Errorf("the messages are %q", got)
	}
	m.Following = func(context.Context) error { return errors.New("behind") }
	b.used["acme"][at(3, 5, 0)] = 100
	b.expect(m, "caches that are behind")
}

func TestAnAlertSaysWhatItIsAbout(t *testing.T) {
	a := Alert{Tenant: "acme", Month: "2026-11", Currency: "EUR", Budget: "500", Threshold: 80, Basis: actual, Net: "412.50"}
	if got, want := a.String(), "The usage in 2026-11 costs 412.50 EUR so far without taxes, and reaches 80 % of spec.costBudget, which is 500 EUR."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	a.Basis = forecast
	if got, want := a.String(), "The usage in 2026-11 is going to cost 412.50 EUR without taxes, and reaches 80 % of spec.costBudget, which is 500 EUR."; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
