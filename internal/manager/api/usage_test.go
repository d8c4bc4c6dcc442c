package api

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/usage"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// measure stores what two apps of each tenant used in an hour that was measured completely but for its last minute.
func (m *manager) measure(hour time.Time) {
	m.Helper()
	for n := range 59 {
		used := map[store.Place]store.Amounts{}
		for _, tenant := range []string{"acme", "beta"} {
			used[store.Place{Tenant: tenant, Project: "shop", App: "web", Cluster: "local"}] = store.Amounts{meter.CPURequested: meter.Of(big.NewInt(305), 1), meter.Pods: meter.Of(big.NewInt(60), 0)}
			used[store.Place{Tenant: tenant, Project: "blog", App: "web", Cluster: "local"}] = store.Amounts{meter.CPURequested: meter.Of(big.NewInt(1), 2)}
		}
		if err := m.store.AddMinute(m.Context(), store.Minute{Cluster: "local", Begin: hour.Add(time.Duration(n) * time.Minute), Groups: []meter.Group{meter.OfPods}, Used: used}); err != nil {
			m.Fatal(err)
		}
	}
}

// used reads all pages of usage, and returns a line of each item and of each gap.
func (m *manager) used(secret, query string) (items, gaps []string) {
	m.Helper()
	for cursor := ""; ; {
		page := read[usage.Page](m, m.as(secret, "GET", "/v1/usage?"+query+"&cursor="+cursor, ""), http.StatusOK)
		for _, u := range page.Items {
			text := fmt.Sprintf("%s/%s/%s/%s %s-%s", u.Tenant, u.Project, u.App, u.Cluster, u.From.Format("02T15"), u.Until.Format("02T15"))
			for _, a := range u.Meters {
				text += fmt.Sprintf(" %s=%s", a.Name, a.Amount)
				if a.Missing > 0 {
					text += fmt.Sprintf(" (without %d)", a.Missing)
				}
			}
			items = append(items, text)
		}
		for _, g := range page.Gaps {
			gaps = append(gaps, fmt.Sprintf("%s %s %s-%s %d", g.Cluster, strings.Join(g.Meters, ","), g.From.Format("02T15"), g.Until.Format("02T15"), g.Minutes))
		}
		if cursor = page.Next; cursor == "" {
			return items, gaps
		}
	}
}

func TestUsageIsSummedUpAndGapsAreMarked(t *testing.T) {
	m, _, _ := newCluster(t)
	viewer := m.holder("viewer", "project:acme/shop:view")
	m.now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, back := range []int{1, 2, 26, 27} {
		m.measure(m.now.Add(-time.Duration(back) * time.Hour))
	}
	items, gaps := m.used(viewer, "limit=2&from=2026-11-28T09:00:00Z")
	if diff := cmp.Diff([]string{"acme/shop/web/local 28T10-28T11 cpu.requested=1799.5 (without 1) pods=3540 (without 1)", "acme/shop/web/local 28T11-28T12 cpu.requested=1799.5 pods=3540"}, items); diff != "" {
		t.Errorf("by hour, -want +got:\n%s", diff)
	}
	// The last minutes are not expected yet: they are written later. Nothing was measured but pods.
	if diff := cmp.Diff([]string{
		"local cpu.used,memory.used 28T09-28T12 176", "local objects 28T09-28T12 176", "local cpu.requested,memory.requested,pods 28T09-28T11 61", "local loadbalancers 28T09-28T12 176", "local storage 28T09-28T12 176",
	}, gaps); diff != "" {
		t.Errorf("-want +gaps:\n%s", diff)
	}
	for query, want := range map[string][]string{
		"step=day&limit=1&from=2026-11-27T00:00:00Z&until=2026-11-29T00:00:00Z": {
			"acme/shop/web/local 27T00-28T00 cpu.requested=3599 (without 1322) pods=7080 (without 1322)", "acme/shop/web/local 28T00-29T00 cpu.requested=3599 (without 601) pods=7080 (without 601)",
		},
		"step=month&limit=1&from=2026-11-27T10:00:00Z&until=2026-12-02T00:00:00Z": {"acme/shop/web/local 27T10-01T00 cpu.requested=5398.5 (without 1382) pods=10620 (without 1382)"},
		"app=web&tenant=acme&project=shop&from=2026-11-28T11:00:00Z":              {"acme/shop/web/local 28T11-28T12 cpu.requested=1799.5 pods=3540"},
		"app=other": nil,
		"until=2026-11-28T10:00:00Z&from=2026-11-28T00:00:00Z": nil,
	} {
		if items, _ := m.used(viewer, query); cmp.Diff(want, items) != "" {
			t.Errorf("%s: %q, want %q", query, items, want)
		}
	}
	if items, _ := m.used(viewer, ""); len(items) != 2 { // Without a time it is today.
		t.Errorf("today: %q", items)
	}
}

// TestEachRoleSeesTheUsageOfItsOwn, and that of others is as if it were not there.
func TestEachRoleSeesTheUsageOfItsOwn(t *testing.T) {
	m, _, _ := newCluster(t)
	m.now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	m.measure(m.now.Add(-time.Hour))
	for scopes, want := range map[string]map[string]int{
		"admin":                  {"": 4, "tenant=acme": 2, "tenant=acme&project=shop": 1, "project=shop": 2, "tenant=none": 0},
		"tenant:acme:view":       {"": 2, "tenant=acme": 2, "project=shop": 1, "tenant=beta": 404, "tenant=none": 404, "tenant=beta&project=shop": 404},
		"tenant:acme:edit":       {"": 2, "tenant=beta": 404},
		"tenant:acme:admin":      {"": 2, "tenant=beta": 404},
		"project:acme/shop:view": {"": 1, "tenant=acme": 1, "project=shop": 1, "project=blog": 404, "project=none": 404, "tenant=beta": 404},
		"project:acme/shop:edit": {"": 1, "project=blog": 404},
		"project:acme/shop:deploy project:acme/blog:view": {"": 422, "project=shop": 1, "project=blog": 1, "tenant=beta&project=shop": 404},
		"project:acme/none:view":                          {"": 0},
	} {
		secret := m.holder(scopes, strings.Fields(scopes)...)
		for query, n := range want {
			answer := m.as(secret, "GET", "/v1/usage?"+query, "")
			if n >= 400 {
				if p := problemOf(t, answer); p.Status != n || strings.Contains(answer.Body.String(), "beta") {
					t.Errorf("%s %q: %+v", scopes, query, p)
				}
				continue
			}
			page := read[usage.Page](m, answer, http.StatusOK)
			if len(page.Items) != n || strings.Contains(scopes, "acme") && strings.Contains(answer.Body.String(), "beta") {
				t.Errorf("%s %q: %s", scopes, query, answer.Body)
			}
		}
		set := m.as(secret, "POST", "/v1/usage", `{"cluster":"farm","amounts":[{"tenant":"acme","project":"shop","meter":"gpu","hour":"2026-11-28T11:00:00Z","amount":"0"}]}`)
		if want := map[bool]int{true: 200, false: 403}[scopes == "admin"]; set.Code != want {
			t.Errorf("%s sets usage: %d %s", scopes, set.Code, set.Body)
		}
	}
}

func TestBadQueriesOfUsageAreRefused(t *testing.T) {
	m, _, _ := newCluster(t)
	admin := m.holder("root", "admin")
	for query, want := range map[string]string{
		"from=2026-11-28T10:30:00Z": "query.from", "until=2026-11-28T10:00:01Z": "query.until", "from=hunter2": "query.from", "step=minute": "query.step",
		"from=2026-11-28T10:00:00Z&until=2026-11-28T10:00:00Z": "query.until", "from=2026-10-01T00:00:00Z&until=2026-11-28T10:00:00Z": "query.until",
		"step=day&from=2020-01-01T00:00:00Z&until=2026-11-28T10:00:00Z": "query.until", "cursor=bmFtZQ": "query.cursor", "cursor=YS9iL2MvZC9l": "query.cursor",
	} {
		p := problemOf(t, m.as(admin, "GET", "/v1/usage?"+query, ""))
		if p.Status >= 500 || len(p.Errors) != 1 || p.Errors[0].Location != want || strings.Contains(fmt.Sprint(p), "hunter2") {
			t.Errorf("%s: %+v", query, p)
		}
	}
	// The cursor of one tenant is none of another.
	m.measure(m.now.UTC().Truncate(time.Hour).Add(-2 * time.Hour))
	page := read[usage.Page](m, m.as(admin, "GET", "/v1/usage?tenant=beta&limit=1", ""), http.StatusOK)
	if p := problemOf(t, m.as(m.holder("acme", "tenant:acme:view"), "GET", "/v1/usage?cursor="+url.QueryEscape(page.Next), "")); page.Next == "" || p.Code != problem.BadRequest {
		t.Errorf("%q: %+v", page.Next, p)
	}
}

// TestForeignUsageIsSet: the same again changes nothing, another amount replaces it, and what is wrong changes nothing at all.
func TestForeignUsageIsSet(t *testing.T) {
	m, _, _ := newCluster(t)
	admin := m.holder("root", "admin")
	m.now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	m.measure(m.now.Add(-time.Hour))
	type row map[string]any
	of := func(change row) row {
		all := row{"tenant": "acme", "project": "shop", "app": "web", "meter": "gpu.a100", "hour": "2026-11-28T11:00:00Z", "amount": "3600.5"}
		for key, value := range change {
			all[key] = value
		}
		return all
	}
	set := func(cluster string, rows ...row) string {
		body, err := json.Marshal(map[string]any{"cluster": cluster, "amounts": rows})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for i, c := range []struct {
		body    string
		changed int
	}{
		{set("local", of(nil), of(row{"hour": "2026-11-28T11:00:00+01:00"})), 2}, {set("local", of(nil)), 0}, {set("local", of(row{"amount": "7"}), of(row{"tenant": "beta"})), 2},
		{set("farm", of(row{"meter": "cpu.requested", "app": ""})), 1},
	} {
		if got := read[usage.Changes](m, m.as(admin, "POST", "/v1/usage", c.body), http.StatusOK); got.Changed != c.changed {
			t.Errorf("%d: %d changed, want %d", i, got.Changed, c.changed)
		}
	}
	before, _ := m.used(admin, "tenant=acme")
	if diff := cmp.Diff([]string{
		"acme/blog/web/local 28T11-28T12 cpu.requested=0.59", "acme/shop//farm 28T11-28T12 cpu.requested=3600.5", "acme/shop/web/local 28T10-28T11 gpu.a100=3600.5", "acme/shop/web/local 28T11-28T12 cpu.requested=1799.5 gpu.a100=7 pods=3540",
	}, before); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, c := range map[string]struct {
		body     string
		status   int
		location string
	}{
		"a meter that is measured":       {set("local", of(row{"meter": "cpu.requested"})), 409, "body.amounts[0].meter"},
		"one of storage":                 {set("local", of(nil), of(row{"meter": "storage/fast"})), 409, "body.amounts[1].meter"},
		"a negative amount":              {set("local", of(row{"amount": "-1"})), 422, "body.amounts[0].amount"},
		"a huge exponent":                {set("local", of(row{"amount": "1e999999999"})), 422, "body.amounts[0].amount"},
		"a number":                       {set("local", of(row{"amount": 1})), 422, "body.amounts[0].amount"},
		"half an hour":                   {set("local", of(row{"hour": "2026-11-28T11:30:00Z"})), 422, "body.amounts[0].hour"},
		"the future":                     {set("local", of(row{"hour": "2026-11-28T15:00:00Z"})), 422, "body.amounts[0].hour"},
		"long ago":                       {set("local", of(row{"hour": "2025-01-01T00:00:00Z"})), 422, "body.amounts[0].hour"},
		"a tenant that is not there":     {set("local", of(nil), of(row{"tenant": "none"})), 422, "body.amounts"},
		"a tenant that can be none":      {set("local", of(row{"tenant": "a/b"})), 422, "body.amounts[0].tenant"},
		"a meter that is none":           {set("local", of(row{"meter": "a=b c"})), 422, "body.amounts[0].meter"},
		"a cluster that is none":         {set("a b", of(nil)), 422, "body.cluster"},
		"the same twice":                 {set("local", of(row{"amount": "1"}), of(row{"amount": "2"})), 422, "body.amounts[1].meter"},
		"the same hour in another zone":  {set("local", of(nil), of(row{"hour": "2026-11-28T12:00:00+01:00"})), 422, "body.amounts[1].meter"},
		"an unknown field":               {set("local", of(row{"price": 1})), 422, "body.amounts[0].price"},
		"nothing":                        {set("local"), 422, "body.amounts"},
		"an hour in the middle of a day": {set("local", of(row{"hour": "2026-11-28"})), 422, "body.amounts[0].hour"},
	} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(t, m.as(admin, "POST", "/v1/usage", c.body))
			if p.Status != c.status || len(p.Errors) == 0 || p.Errors[0].Location != c.location {
				t.Errorf("%+v", p)
			}
		})
	}
	if after, _ := m.used(admin, "tenant=acme"); cmp.Diff(before, after) != "" {
		t.Errorf("something was written: %q", after)
	}
	events, err := m.store.ListEvents(t.Context(), "acme", 0, 100)
	if err != nil || len(events) != 3 || events[0].Action != "setUsage" || events[0].Object != "usage/farm" || events[0].Actor != "root" {
		t.Errorf("%v: %+v", err, events)
	}
}
