package api

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/billing"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// pricesOf returns a price list with a price of a core-hour.
func pricesOf(name, price string) *v1alpha1.PriceList {
	p := &v1alpha1.PriceList{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:1", v1alpha1.AuthorAnnotation: "ann"}}}
	p.Spec = v1alpha1.PriceListSpec{
		Default: name == "standard", Currency: "EUR", Taxes: []v1alpha1.PriceTax{{Name: "=VAT", Percent: "19"}},
		Meters:    []v1alpha1.PriceMeter{{Name: meter.CPURequested, Unit: "core-hour", Periods: []v1alpha1.PricePeriod{{From: "2026-01-01", Tiers: []v1alpha1.PriceTier{{Price: v1alpha1.Decimal(price)}}}}}},
		Discounts: []v1alpha1.PriceDiscount{{Tenant: "acme", Percent: "10"}, {Tenant: "beta", Percent: "50"}},
	}
	return p
}

// newBilled returns a manager of a cluster with a price list, whose tenants used 3 and 1 core-hours in October, in different apps, and an hour ago.
func newBilled(t *testing.T) (*manager, *index.Index) {
	t.Helper()
	m, cluster, _ := newCluster(t)
	apply(t, cluster, pricesOf("standard", "1.01"))
	apply(t, cluster, pricesOf("other", "7"))
	m.now = time.Date(2026, 11, 1, 3, 30, 0, 0, time.UTC)
	var all []store.Used
	for _, tenant := range []string{"acme", "beta"} {
		for _, hour := range []time.Time{time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)} {
			for app, core := range map[string]int64{"web": 3, "db": 1} {
				all = append(all, store.Used{Place: store.Place{Tenant: tenant, Project: "shop", App: app, Cluster: "elsewhere"}, Hour: hour, Amounts: store.Amounts{
					meter.CPURequested: meter.Of(big.NewInt(3600*core), 0), "gpu": meter.Of(big.NewInt(5), 0),
				}})
			}
		}
	}
	if _, err := m.store.SetUsage(t.Context(), all, nil); err != nil {
		t.Fatal(err)
	}
	return m, cluster
}

// post sends a POST, with an Idempotency-Key unless it is "".
func (m *manager) post(secret, path, key, body string) *httptest.ResponseRecorder {
	m.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer := httptest.NewRecorder()
	m.ServeHTTP(answer, r)
	return answer
}

func TestAMonthIsClosedOnceAndItsInvoiceStays(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	first := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	// 4 core-hours cost 4.04, of which 10 % are 0.404, and 19 % of 3.64 are 0.6916.
	if first.Number != 1 || first.Net != "3.64" || first.Total != "4.33" || first.Taxes[0].Amount != "0.69" || first.PriceList != "standard" || first.Author != "ann" || first.Revision != "main@sha1:1" || first.ClosedBy != "root" {
		t.Errorf("%+v", first)
	}
	if diff := cmp.Diff([]billing.AppShare{{Project: "shop", App: "db", Amount: "1.01"}, {Project: "shop", App: "web", Amount: "3.03"}}, first.Apps); diff != "" {
		t.Errorf("-want +apps:\n%s", diff)
	}
	if len(first.Unpriced) != 1 || first.Unpriced[0].Meter != "gpu" || len(first.Lines[0].Hours) != 1 || len(first.Gaps) == 0 {
		t.Errorf("%+v", first)
	}
	// Neither usage nor prices change it.
	apply(t, cluster, pricesOf("standard", "9"))
	used := store.Used{Place: store.Place{Tenant: "acme", Project: "shop", App: "web", Cluster: "elsewhere"}, Hour: time.Date(2026, 10, 3, 0, 0, 0, 0, time.UTC), Amounts: store.Amounts{meter.CPURequested: meter.Of(big.NewInt(36000), 0)}}
	if _, err := m.store.SetUsage(t.Context(), []store.Used{used}, nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/tenants/acme/invoices/2026-10/close", "/v1/tenants/acme/invoices/2026-10/close?again=true"} {
		again := read[invoices.Invoice](m, m.post(admin, path, "", ""), http.StatusOK)
		if diff := cmp.Diff(first, again, cmp.AllowUnexported(billing.Line{}, billing.HourShare{}), cmp.Comparer(func(a, b *big.Rat) bool { return true })); diff != "" {
			t.Errorf("%s: -first +again:\n%s", path, diff)
		}
	}
	if other := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/beta/invoices/2026-10/close", "", ""), http.StatusOK); other.Number != 2 || other.Tenant != "beta" {
		t.Errorf("%+v", other)
	}
	if events, err := m.store.ListEvents(t.Context(), "", 0, 2); err != nil || events[0].Action != "closeInvoice" || events[0].Object != "invoice/2" || events[1].Object != "invoice/1" || events[1].Tenant != "acme" || events[1].Actor != "root" {
		t.Errorf("%v: %+v", err, events)
	}
}

func TestManyWhoCloseAMonthGetOneInvoice(t *testing.T) {
	m, _ := newBilled(t)
	admin := m.holder("root", "admin")
	var all sync.WaitGroup
	for range 3 { // The last one computes after the others, for which it waits for five seconds at most.
		all.Go(func() {
			if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK); is.Number != 1 {
				t.Errorf("the number is %d", is.Number)
			}
		})
	}
	all.Wait()
}

// TestAMonthThatCannotBeClosedSaysWhy, and takes no number.
func TestAMonthThatCannotBeClosedSaysWhy(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	for path, want := range map[string]problem.Code{
		"/v1/tenants/acme/invoices/2026-11/close": problem.Conflict, "/v1/tenants/acme/invoices/2026-12/close": problem.Conflict, "/v1/tenants/acme/invoices/2025-08/close": problem.Conflict,
		"/v1/tenants/acme/invoices/2026-13/close": problem.Invalid, "/v1/tenants/acme/invoices/x/close": problem.Invalid, "/v1/tenants/none/invoices/2026-10/close": problem.NotFound,
	} {
		if p := problemOf(t, m.post(admin, path, "", "")); p.Code != want {
			t.Errorf("%s: %+v", path, p)
		}
	}
	m.now = time.Date(2026, 11, 1, 1, 59, 0, 0, time.UTC) // Usage of the last hour may still come in.
	if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", "")); p.Code != problem.Conflict || !strings.Contains(p.Detail, "2026-11-01T02:00:00Z") {
		t.Errorf("%+v", p)
	}
	m.now = m.now.Add(time.Hour)
	named := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{PriceList: "missing"}}
	apply(t, cluster, named)
	if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", "")); p.Code != problem.Conflict || !strings.Contains(p.Detail, "missing") {
		t.Errorf("%+v", p)
	}
	named.Spec.PriceList = "other"
	apply(t, cluster, named)
	if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK); is.Number != 1 || is.PriceList != "other" {
		t.Errorf("%+v", is)
	}
}

func TestCreditNotesTakeBackAnInvoice(t *testing.T) {
	m, _ := newBilled(t)
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	credit := func(number int, key, body string, status int) invoices.Invoice {
		t.Helper()
		return read[invoices.Invoice](m, m.post(admin, fmt.Sprintf("/v1/invoices/%d/credit", number), key, body), status)
	}
	for range 2 { // The key makes it once.
		note := credit(1, "a", `{"net":"1.00","reason":"wrong"}`, http.StatusCreated)
		if note.Number != 2 || note.Credits != 1 || note.Kind != "credit-note" || note.Net != "-1.00" || note.Taxes[0].Amount != "-0.19" || note.Total != "-1.19" || note.Reason != "wrong" {
			t.Errorf("%+v", note)
		}
	}
	for body, want := range map[string]problem.Code{
		`{"net":"2.65","reason":"x"}`: problem.Invalid, `{"net":"0","reason":"x"}`: problem.Invalid, `{"net":"-1","reason":"x"}`: problem.Invalid, `{"net":"0.001","reason":"x"}`: problem.Invalid,
		`{"net":"1e0","reason":"x"}`: problem.Invalid, `{"net":"1"}`: problem.Invalid,
	} {
		if p := problemOf(t, m.post(admin, "/v1/invoices/1/credit", "", body)); p.Code != want {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if p := problemOf(t, m.post(admin, "/v1/invoices/1/credit", "a", `{"reason":"other"}`)); p.Code != problem.Invalid {
		t.Errorf("a key that was used: %+v", p)
	}
	if p := problemOf(t, m.post(admin, "/v1/invoices/2/credit", "", `{"reason":"x"}`)); p.Code != problem.Conflict {
		t.Errorf("a credit note: %+v", p)
	}
	if p := problemOf(t, m.post(admin, "/v1/invoices/3/credit", "", `{"reason":"x"}`)); p.Code != problem.NotFound {
		t.Errorf("one that is not there: %+v", p)
	}
	// What is left, with the taxes that are left.
	if rest := credit(1, "", `{"reason":"the rest"}`, http.StatusCreated); rest.Number != 3 || rest.Net != "-2.64" || rest.Taxes[0].Amount != "-0.50" || rest.Total != "-3.14" {
		t.Errorf("%+v", rest)
	}
	if p := problemOf(t, m.post(admin, "/v1/invoices/1/credit", "", `{"reason":"x"}`)); p.Code != problem.Conflict {
		t.Errorf("nothing is left: %+v", p)
	}
	// A month whose invoice was taken back is closed again only if that is said.
	for _, c := range []struct {
		query string
		want  int64
	}{{"", 1}, {"?again=true", 4}, {"?again=true", 4}, {"", 4}} {
		if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close"+c.query, "b"+c.query, ""), http.StatusOK); is.Number != c.want {
			t.Errorf("%q: the number is %d, want %d", c.query, is.Number, c.want)
		}
	}
}

// TestOnlyTheOwnInvoicesAreSeen: those of other tenants, and of an earlier tenant of the name, are as if they were not there.
func TestOnlyTheOwnInvoicesAreSeen(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	for _, tenant := range []string{"acme", "beta"} {
		read[invoices.Invoice](m, m.post(admin, "/v1/tenants/"+tenant+"/invoices/2026-10/close", "", ""), http.StatusOK)
	}
	numbers := func(secret, query string) string {
		t.Helper()
		var all []string
		for cursor := ""; ; {
			list := read[invoices.InvoicePage](m, m.as(secret, "GET", "/v1/invoices?limit=1"+query+"&cursor="+cursor, ""), http.StatusOK)
			for _, is := range list.Items {
				all = append(all, fmt.Sprintf("%d %s", is.Number, is.Tenant))
			}
			if cursor = list.Next; cursor == "" {
				return strings.Join(all, " ")
			}
		}
	}
	if got := numbers(admin, ""); got != "2 beta 1 acme" {
		t.Errorf("an administrator sees %s", got)
	}
	for role, reads := range map[string]bool{
		"tenant:acme:view": true, "tenant:acme:edit": true, "tenant:acme:admin": true, "project:acme/shop:view": false, "project:acme/shop:edit": false, "project:acme/shop:deploy": false, "tenant:none:admin": false,
	} {
		secret := m.holder(role, role)
		own := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[reads]
		writes := map[bool]int{true: http.StatusForbidden, false: http.StatusNotFound}[reads]
		for request, want := range map[string]int{
			"GET /v1/invoices/1": own, "GET /v1/invoices/2": 404, "GET /v1/invoices/3": 404, "GET /v1/invoices?tenant=acme": own, "GET /v1/invoices?tenant=beta": 404, "GET /v1/invoices?tenant=gone": 404,
			"GET /v1/prices?tenant=acme": own, "GET /v1/prices?tenant=beta": 404, "POST /v1/tenants/acme/invoices/2026-10/close": writes, "POST /v1/tenants/beta/invoices/2026-10/close": 404,
			"POST /v1/invoices/1/credit": writes, "POST /v1/invoices/2/credit": 404, "POST /v1/invoices/3/credit": 404,
		} {
			method, path, _ := strings.Cut(request, " ")
			body := map[bool]string{true: `{"reason":"x"}`}[strings.HasSuffix(path, "/credit")]
			if answer := m.as(secret, method, path, body); answer.Code != want || strings.Contains(answer.Body.String(), "beta") {
				t.Errorf("%s %s: %d, want %d: %s", role, request, answer.Code, want, answer.Body)
			}
		}
		if reads {
			if got := numbers(secret, ""); got != "1 acme" {
				t.Errorf("%s sees %s", role, got)
			}
		}
	}
	viewer := m.holder("viewer", "tenant:acme:view")
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "the next one"}})
	if got := numbers(viewer, ""); got != "" {
		t.Errorf("the next tenant of the name sees %s", got)
	}
	if answer := m.as(viewer, "GET", "/v1/invoices/1", ""); answer.Code != http.StatusNotFound {
		t.Errorf("the next tenant of the name reads it: %d", answer.Code)
	}
	if got := numbers(admin, "&tenant=acme"); got != "1 acme" {
		t.Errorf("an administrator sees %s", got)
	}
}

// TestTheNextTenantOfTheNamePaysOnlyWhatItUsed: from the hour in which it was created.
func TestTheNextTenantOfTheNamePaysOnlyWhatItUsed(t *testing.T) {
	m, cluster := newBilled(t)
	former := store.Used{Place: store.Place{Tenant: "acme", Project: "former", App: "web", Cluster: "elsewhere"}, Hour: time.Date(2026, 10, 31, 22, 0, 0, 0, time.UTC), Amounts: store.Amounts{meter.CPURequested: meter.Of(big.NewInt(36000), 0)}}
	if _, err := m.store.SetUsage(t.Context(), []store.Used{former}, nil); err != nil {
		t.Fatal(err)
	}
	viewer := m.holder("viewer", "tenant:acme:view")
	draft := func() string {
		t.Helper()
		answer := m.as(viewer, "GET", "/v1/invoices?month=2026-10", "")
		list := read[invoices.InvoicePage](m, answer, http.StatusOK)
		if list.Draft == nil {
			return list.NoDraft
		}
		return fmt.Sprint(list.Draft.Net, " ", strings.Contains(answer.Body.String(), "former"))
	}
	for _, c := range []struct {
		created time.Time
		want    string
	}{
		{time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), "12.73 true"}, {time.Date(2026, 10, 31, 22, 59, 0, 0, time.UTC), "12.73 true"},
		{time.Date(2026, 11, 1, 1, 0, 0, 0, time.UTC), "Tenant acme was not there in 2026-10."}, {time.Date(2026, 10, 31, 23, 59, 0, 0, time.UTC), "3.64 false"},
	} {
		apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "the next one", CreationTimestamp: metav1.NewTime(c.created)}})
		if got := draft(); got != c.want {
			t.Errorf("of a tenant that was created at %s the draft is %s, want %s", c.created, got, c.want)
		}
	}
	answer := m.post(m.holder("root", "admin"), "/v1/tenants/acme/invoices/2026-10/close", "", "")
	is := read[invoices.Invoice](m, answer, http.StatusOK)
	if is.Net != "3.64" || strings.Contains(answer.Body.String(), "former") || len(is.Gaps) == 0 || is.Gaps[0].From.Before(time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("the invoice is %+v", is)
	}
}

func TestADraftHasAForecast(t *testing.T) {
	m, cluster := newBilled(t)
	viewer := m.holder("viewer", "tenant:acme:view")
	draft := func(query string) invoices.InvoicePage {
		t.Helper()
		return read[invoices.InvoicePage](m, m.as(viewer, "GET", "/v1/invoices"+query, ""), http.StatusOK)
	}
	// 4 core-hours in three hours, and 717 hours are left: 4 + 956, at 1.01.
	if list := draft(""); list.Draft == nil || list.Draft.Month != "2026-11" || list.Draft.Net != "3.64" || list.Draft.Forecast == nil || list.Draft.Forecast.Net != "872.64" || list.Draft.Forecast.Total != "1038.44" {
		t.Errorf("%+v", list.Draft)
	}
	if list := draft("?month=2026-10"); list.Draft == nil || list.Draft.Net != "3.64" || list.Draft.Forecast != nil {
		t.Errorf("%+v", list.Draft)
	}
	for query, why := range map[string]string{"?month=2026-12": "not begun", "?month=2025-08": "not kept"} {
		if list := draft(query); list.Draft != nil || !strings.Contains(list.NoDraft, why) {
			t.Errorf("%s: %+v", query, list)
		}
	}
	read[invoices.Invoice](m, m.post(m.holder("root", "admin"), "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	if list := draft("?month=2026-10"); list.Draft != nil || list.NoDraft != "" || len(list.Items) != 1 {
		t.Errorf("a month that is closed: %+v", list)
	}
	created := metav1.NewTime(time.Date(2026, 11, 1, 1, 15, 0, 0, time.UTC))
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "the next one", CreationTimestamp: created}})
	// 4 core-hours in one whole hour: 4 + 2868, at 1.01.
	if list := draft(""); list.Draft == nil || list.Draft.Forecast == nil || list.Draft.Forecast.Net != "2610.65" {
		t.Errorf("of a tenant that is two hours old: %+v", list.Draft)
	}
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{PriceList: "missing"}})
	if list := draft(""); list.Draft != nil || !strings.Contains(list.NoDraft, "missing") {
		t.Errorf("without prices: %+v", list)
	}
}

// TestATenantSeesItsOwnPrices: discounts of others are not its business.
func TestATenantSeesItsOwnPrices(t *testing.T) {
	m, _ := newBilled(t)
	prices := func(secret string) string {
		t.Helper()
		var all []string
		for cursor := ""; ; {
			list := read[page.List[billing.Prices]](m, m.as(secret, "GET", "/v1/prices?limit=1&cursor="+cursor, ""), http.StatusOK)
			for _, p := range list.Items {
				all = append(all, p.Name, fmt.Sprint(len(p.Spec.Discounts)))
			}
			if cursor = list.Next; cursor == "" {
				return strings.Join(all, " ")
			}
		}
	}
	if got := prices(m.holder("root", "admin")); got != "other 2 standard 2" {
		t.Errorf("an administrator sees %s", got)
	}
	if got := prices(m.holder("viewer", "tenant:acme:view")); got != "standard 1" {
		t.Errorf("a tenant sees %s", got)
	}
}

func TestAnInvoiceIsWrittenAsTheCallerWants(t *testing.T) {
	m, _ := newBilled(t)
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	get := func(query, accept, want string) string {
		t.Helper()
		r := httptest.NewRequest("GET", "/v1/invoices/1"+query, nil)
		r.Header.Set("Authorization", "Bearer "+admin)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, r)
		if got := answer.Header().Get("Content-Type"); answer.Code != http.StatusOK || got != want {
			t.Errorf("%s %s: %d %s, want %s", query, accept, answer.Code, got, want)
		}
		if want == "text/html; charset=utf-8" && !strings.Contains(answer.Header().Get("Content-Security-Policy"), "style-src 'sha256-") {
			t.Errorf("the page has the policy %s", answer.Header().Get("Content-Security-Policy"))
		}
		return answer.Body.String()
	}
	const asJSON, asCSV, asHTML = "application/json", "text/csv; charset=utf-8", "text/html; charset=utf-8"
	get("", "", asJSON)
	get("", "*/*", asJSON)
	get("", "image/png, text/csv;q=0.9", asCSV)
	get("?format=json", "text/html", asJSON)
	rows, err := csv.NewReader(strings.NewReader(get("?format=csv", "text/html", asCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]*big.Rat{}
	for _, row := range rows {
		if amount, ok := new(big.Rat).SetString(row[8]); ok {
			if sums[row[0]] == nil {
				sums[row[0]] = new(big.Rat)
			}
			sums[row[0]].Add(sums[row[0]], amount)
		}
		if strings.ContainsAny(row[1][:min(1, len(row[1]))], "=+-@") {
			t.Errorf("a spreadsheet computes %q", row)
		}
	}
	if all := new(big.Rat).Add(sums["line"], new(big.Rat).Add(sums["discount"], sums["tax"])); all.Cmp(sums["total"]) != 0 || sums["app"].Cmp(sums["line"]) != 0 {
		t.Errorf("the rows do not add up: %v", rows)
	}
	html := get("", "text/html,application/xhtml+xml", asHTML)
	for _, want := range []string{"<h1>Invoice 1</h1>", "acme", "4.04", "4.33", "=VAT", "gpu", "2026-10-31 23:00"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page has no %q:\n%s", want, html)
		}
	}
}

// unsettled is a store of which the manager is killed before it keeps the answer for an Idempotency-Key.
type unsettled struct{ store.Store }

// FinishRequest implements store.Requests.
func (unsettled) FinishRequest(context.Context, store.Request, store.Event) error {
	return errors.New("killed")
}

// TestAManagerThatIsKilledBeforeItAnswersMakesNoSecondOne, of a request that is sent again with its key.
func TestAManagerThatIsKilledBeforeItAnswersMakesNoSecondOne(t *testing.T) {
	m, cluster := newBilled(t)
	handler, err := New(Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: unsettled{m.store}, RequestsPerSecond: 10_000, Burst: 10_000, Now: func() time.Time { return m.now },
		Live: &live.Operations{Index: cluster, Measured: "local", Synced: func(context.Context) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	for range 2 {
		if note := read[invoices.Invoice](m, m.post(admin, "/v1/invoices/1/credit", "a", `{"reason":"x"}`), http.StatusCreated); note.Number != 2 {
			t.Errorf("the credit note has the number %d", note.Number)
		}
	}
	for _, key := range []string{"b", "b", "c", "b"} { // In between, what the key made is taken back.
		if key == "c" {
			read[invoices.Invoice](m, m.post(admin, "/v1/invoices/3/credit", key, `{"reason":"x"}`), http.StatusCreated)
			continue
		}
		if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close?again=true", key, ""), http.StatusOK); is.Number != 3 {
			t.Errorf("the next invoice has the number %d", is.Number)
		}
	}
}

// TestWebhooksGetOneMessageOfEachInvoiceAndCreditNote, whatever is sent again or refused. Those of another tenant get none.
func TestWebhooksGetOneMessageOfEachInvoiceAndCreditNote(t *testing.T) {
	m, _ := newBilled(t)
	for id, tenant := range map[string]string{"own": "acme", "platform": "", "other": "beta"} {
		w := store.Webhook{ID: id, Tenant: tenant, URL: "https://hooks.example.com/", Types: []string{"invoice.*"}, Created: m.now, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: id, Data: []byte("x")}}
		if err := m.store.CreateWebhook(t.Context(), w, store.Event{At: m.now}); err != nil {
			t.Fatal(err)
		}
	}
	admin := m.holder("root", "admin")
	problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-11/close", "", "")) // The month has not ended.
	for range 2 {
		read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "a", ""), http.StatusOK)
		read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
		read[invoices.Invoice](m, m.post(admin, "/v1/invoices/1/credit", "b", `{"net":"1.00","reason":"an <outage>"}`), http.StatusCreated)
	}
	problemOf(t, m.post(admin, "/v1/invoices/1/credit", "", `{"net":"9.00","reason":"too much"}`))
	want := []string{
		`invoice/1 {"type":"invoice.closed","timestamp":"2026-11-01T03:30:00Z","data":{"tenant":"acme","number":1,"month":"2026-10","currency":"EUR","net":"3.64","total":"4.33"}}`,
		`invoice/1 {"type":"invoice.credited","timestamp":"2026-11-01T03:30:00Z","data":{"tenant":"acme","number":2,"month":"2026-10","currency":"EUR","net":"-1.00","total":"-1.19","credits":1,"reason":"an <outage>"}}`,
	}
	for webhook, want := range map[string][]string{"own": want, "platform": want, "other": nil} {
		found, err := m.store.ListDeliveries(t.Context(), webhook, "", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range slices.Backward(found) {
			got = append(got, d.Object+" "+string(d.Body))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", webhook, diff)
		}
	}
}
