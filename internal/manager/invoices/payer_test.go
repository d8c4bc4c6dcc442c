package invoices

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

func at(day, hour, minute int) time.Time {
	return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC)
}

func payerFor(uid string, created, gone time.Time) store.Payer {
	return store.Payer{TenantRef: store.TenantRef{Name: "acme", UID: uid, Created: created}, Gone: gone}
}

// TestEachHourOfANameHasAtMostOnePayer: it belongs to the Tenant that had the name, and to none if two had it.
func TestEachHourOfANameHasAtMostOnePayer(t *testing.T) {
	for name, c := range map[string]struct {
		all  []store.Payer
		want map[string][2]time.Time
	}{
		"one that exists":             {[]store.Payer{payerFor("1", at(3, 10, 20), time.Time{})}, map[string][2]time.Time{"1": {at(3, 10, 0), endless}}},
		"one that is gone":            {[]store.Payer{payerFor("1", at(3, 10, 20), at(5, 11, 1))}, map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 12, 0)}}},
		"the next one comes later":    {[]store.Payer{payerFor("1", at(3, 10, 20), at(5, 11, 1)), payerFor("2", at(5, 12, 0), time.Time{})}, map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 12, 0)}, "2": {at(5, 12, 0), endless}}},
		"the next one comes at once":  {[]store.Payer{payerFor("1", at(3, 10, 20), at(5, 11, 1)), payerFor("2", at(5, 11, 2), time.Time{})}, map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 11, 0)}, "2": {at(5, 12, 0), endless}}},
		"nobody saw that it was gone": {[]store.Payer{payerFor("1", at(3, 10, 20), at(6, 9, 0)), payerFor("2", at(5, 11, 2), time.Time{})}, map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 11, 0)}, "2": {at(5, 12, 0), endless}}},
		"it is not recorded yet that it is gone": {
			[]store.Payer{payerFor("1", at(3, 10, 20), time.Time{}), payerFor("2", at(5, 11, 2), time.Time{})}, map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 11, 0)}, "2": {at(5, 12, 0), endless}},
		},
		"three in an hour": {
			[]store.Payer{payerFor("1", at(3, 10, 20), at(5, 11, 1)), payerFor("2", at(5, 11, 2), at(5, 11, 3)), payerFor("3", at(5, 11, 4), time.Time{})},
			map[string][2]time.Time{"1": {at(3, 10, 0), at(5, 11, 0)}, "2": {at(5, 12, 0), at(5, 11, 0)}, "3": {at(5, 12, 0), endless}},
		},
	} {
		got := map[string][2]time.Time{}
		for _, p := range withHours(c.all) {
			got[p.UID] = [2]time.Time{p.from, p.until}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestAPayerIsInTheMonthsOfItsHours(t *testing.T) {
	november := billing.MonthOf(at(1, 0, 0))
	october, december := billing.MonthOf(at(0, 0, 0)), billing.MonthOf(at(31, 0, 0))
	for name, c := range map[string]struct {
		from, until time.Time
		want        [3]bool
	}{
		"one that exists":              {at(3, 10, 0), endless, [3]bool{false, true, true}},
		"one that was there before":    {at(-40, 0, 0), at(1, 0, 0), [3]bool{true, false, false}},
		"one of an hour of two months": {at(0, 23, 0), at(1, 1, 0), [3]bool{true, true, false}},
		"one without an hour":          {at(3, 10, 0), at(3, 9, 0), [3]bool{}},
	} {
		p := payer{from: c.from, until: c.until}
		if got := [3]bool{p.in(october), p.in(november), p.in(december)}; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestTheOrderOfPayersIsThatOfTheirCreation, whatever the order in which they are listed.
func TestTheOrderOfPayersIsThatOfTheirCreation(t *testing.T) {
	one, two := payerFor("1", at(3, 10, 20), at(5, 11, 1)), payerFor("2", at(5, 12, 0), time.Time{})
	gone, same := payerFor("4", at(3, 10, 20), at(3, 10, 20)), payerFor("3", at(3, 10, 20), time.Time{})
	for name, c := range map[string]struct {
		all  []store.Payer
		want []string
	}{
		"the last one is listed first": {[]store.Payer{two, one}, []string{"1", "2"}},
		"two of the same second":       {[]store.Payer{same, gone}, []string{"4", "3"}},
	} {
		var got []string
		for _, p := range withHours(c.all) {
			got = append(got, p.UID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestAnIndexThatIsBehindMakesNobodyPay: another manager recorded already that the tenant of the index is gone, or that there is a next one.
func TestAnIndexThatIsBehindMakesNobodyPay(t *testing.T) {
	gone, there, next := payerFor("1", at(3, 10, 20), at(5, 11, 1)), payerFor("1", at(3, 10, 20), time.Time{}), payerFor("2", at(5, 11, 2), time.Time{})
	for name, c := range map[string]struct {
		recorded []store.Payer
		index    store.Payer
		// want are the UIDs of the payers, nil if the index is behind.
		want []string
	}{
		"the index has the former one":                         {[]store.Payer{gone, next}, there, nil},
		"the index has the former one, which is not gone yet":  {[]store.Payer{there, next}, there, nil},
		"the index has the one that is there":                  {[]store.Payer{gone, next}, next, []string{"1", "2"}},
		"the one that is there is not recorded":                {[]store.Payer{gone}, next, []string{"1", "2"}},
		"the index has one again that was recorded as gone":    {[]store.Payer{gone}, there, []string{"1"}},
		"nobody is recorded, as before the first round of all": {nil, there, []string{"1"}},
	} {
		s := newStore(t)
		if err := s.RecordPayers(t.Context(), c.recorded, at(6, 0, 0)); err != nil {
			t.Fatal(err)
		}
		o := &Operations{Store: s, Tenant: func(context.Context, string) (store.TenantRef, error) { return c.index.TenantRef, nil }}
		all, _, err := o.payersOf(t.Context(), "acme")
		var got []string
		for _, p := range all {
			got = append(got, p.UID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if len(c.want) > 0 {
			if last := all[len(all)-1]; err != nil || last.until != endless || !last.Gone.IsZero() {
				t.Errorf("%s: %v: the tenant that exists is %+v", name, err, last)
			}
			continue
		}
		if refused := new(problem.Problem); !errors.As(err, &refused) || refused.Code != problem.Unavailable || refused.Wait != 5*time.Second {
			t.Errorf("%s: %v", name, err)
		}
	}
}
