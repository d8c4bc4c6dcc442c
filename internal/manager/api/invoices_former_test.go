package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/index"
	"github.com/kubeop/kubeop/internal/manager/invoices"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// forget removes a tenant from the cluster, in which it was since a time, and records that it is gone.
func (m *manager) forget(cluster *index.Index, name, uid string, created, gone time.Time) {
	m.Helper()
	live.Forget(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}})
	is := store.Payer{TenantRef: store.TenantRef{Name: name, UID: uid, Created: created}, Gone: gone, PriceList: "other"}
	if err := m.store.RecordPayers(m.Context(), []store.Payer{is}, gone); err != nil {
		m.Fatal(err)
	}
}

// TestATenantThatWasDeletedGetsTheInvoiceOfItsLastMonth: by the price list that it named, and of its own hours. The next tenant of the name pays only for its own, and sees nothing of the former one.
func TestATenantThatWasDeletedGetsTheInvoiceOfItsLastMonth(t *testing.T) {
	m, cluster := newBilled(t)
	admin, viewer := m.holder("root", "admin"), m.holder("viewer", "tenant:acme:view")
	m.forget(cluster, "acme", "former", time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 1, 30, 0, 0, time.UTC))
	page := func(query string) invoices.InvoicePage {
		t.Helper()
		return read[invoices.InvoicePage](m, m.as(admin, "GET", "/v1/invoices"+query, ""), http.StatusOK)
	}
	// 4 core-hours at 7, less 10 %.
	if list := page("?tenant=acme&month=2026-10"); list.Draft == nil || list.Draft.Net != "25.20" || list.Draft.Forecast != nil {
		t.Errorf("the draft is %+v, %s", list.Draft, list.NoDraft)
	}
	if list := page("?month=2026-10"); len(list.Unclosed) != 1 || list.Unclosed[0].Tenant != "acme" || list.Unclosed[0].UID != "former" || list.Unclosed[0].Gone == nil {
		t.Errorf("not closed are %+v", list.Unclosed)
	}
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "next", CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 1, 2, 10, 0, 0, time.UTC))}})
	end := func(month, query string, status int) invoices.Invoice {
		t.Helper()
		return read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/"+month+"/close"+query, "", ""), status)
	}
	for range 2 {
		if is := end("2026-10", "", http.StatusOK); is.Number != 1 || is.Net != "25.20" || is.PriceList != "other" || is.UID != "former" {
			t.Errorf("the invoice is %+v", is)
		}
	}
	for _, query := range []string{"?uid=next", "?uid=next&again=true"} {
		if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close"+query, "", "")); p.Code != problem.Conflict || p.Detail != "Tenant acme was not there in 2026-10." {
			t.Errorf("%s, which was created later: %+v", query, p)
		}
	}
	if list := page("?month=2026-10"); len(list.Unclosed) != 0 {
		t.Errorf("not closed are %+v", list.Unclosed)
	}
	answer := m.as(viewer, "GET", "/v1/invoices?month=2026-10", "")
	if list := read[invoices.InvoicePage](m, answer, http.StatusOK); len(list.Items) != 0 || list.Draft != nil || list.NoDraft != "Tenant acme was not there in 2026-10." || strings.Contains(answer.Body.String(), "former") {
		t.Errorf("the next tenant of the name sees %s", answer.Body)
	}
	if answer := m.as(viewer, "GET", "/v1/invoices/1", ""); answer.Code != http.StatusNotFound {
		t.Errorf("the next tenant of the name reads it: %d", answer.Code)
	}
	// Both were there in November: the last hour of one is 01:00, and the first one of the other 02:00.
	m.now = time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	admin = m.holder("root in December", "admin") // Tokens expire.
	if is := end("2026-11", "", http.StatusOK); is.Number != 2 || is.Net != "3.64" || is.UID != "next" {
		t.Errorf("the invoice of the next tenant is %+v", is)
	}
	if is := end("2026-11", "?uid=former", http.StatusOK); is.Number != 3 || is.Net != "0.00" || is.UID != "former" {
		t.Errorf("the last invoice of the former tenant is %+v", is)
	}
	if is := end("2026-11", "?uid=next&again=true", http.StatusOK); is.Number != 2 {
		t.Errorf("that of the next tenant has not been credited, and is made again: %+v", is)
	}
	for path, want := range map[string]problem.Code{"2026-11/close?uid=none": problem.NotFound, "2026-10/close?uid=none": problem.NotFound} {
		if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/"+path, "", "")); p.Code != want {
			t.Errorf("%s: %+v", path, p)
		}
	}
	for _, who := range []string{"acme", "beta"} {
		live.Forget(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: who}})
	}
	m.now = time.Date(2027, 1, 1, 3, 0, 0, 0, time.UTC)
	admin = m.holder("root in January", "admin")
	if p := problemOf(t, m.post(admin, "/v1/tenants/beta/invoices/2026-12/close", "", "")); p.Code != problem.NotFound {
		t.Errorf("one that nobody recorded: %+v", p)
	}
	if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-12/close", "", "")); p.Code != problem.Conflict || !strings.Contains(p.Detail, "2026-12") {
		t.Errorf("a month after the tenant: %+v", p)
	}
	if list := page("?tenant=acme&month=2026-12"); list.Draft != nil || !strings.Contains(list.NoDraft, "2026-12") {
		t.Errorf("a month after the tenant: %+v", list)
	}
}

// TestAnInvoiceStaysWhenNobodyKnowsItsTenantAnyMore: to close its month again answers it.
func TestAnInvoiceStaysWhenNobodyKnowsItsTenantAnyMore(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	read[invoices.Invoice](m, m.post(admin, "/v1/invoices/1/credit", "", `{"reason":"x"}`), http.StatusCreated)
	live.Forget(cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}})
	if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK); is.Number != 1 {
		t.Errorf("the invoice is %+v", is)
	}
	for _, path := range []string{"2026-10/close?again=true", "2026-09/close"} {
		if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/"+path, "", "")); p.Code != problem.NotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

// TestAMonthIsNotClosedBeforeTheClusterWasRead, although it has an invoice: that may be of an earlier tenant of the name.
func TestAMonthIsNotClosedBeforeTheClusterWasRead(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	handler, err := New(Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, RequestsPerSecond: 10_000, Burst: 10_000, Now: func() time.Time { return m.now },
		Live: &live.Operations{Index: cluster, Measured: "local", Synced: func(context.Context) error { return errors.New("not yet") }},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Handler = handler
	for _, query := range []string{"", "?again=true"} {
		answer := m.post(admin, "/v1/tenants/acme/invoices/2026-10/close"+query, "", "")
		if p := problemOf(t, answer); p.Code != problem.Unavailable || answer.Header().Get("Retry-After") != "5" {
			t.Errorf("%q: %+v", query, p)
		}
	}
}

// TestACloseThatAnOlderManagerBeganIsSentAgain: its Idempotency-Key is that of the same request, and not of one with a UID.
func TestACloseThatAnOlderManagerBeganIsSentAgain(t *testing.T) {
	m, _ := newBilled(t)
	admin := m.holder("root", "admin")
	hash := sha256.Sum256([]byte(`["closeInvoice","acme","2026-10",false]`))
	if _, err := m.store.BeginRequest(t.Context(), store.Request{Caller: "root", Key: "a", Hash: hash[:], Created: m.now, Expires: m.now.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "a", ""), http.StatusOK); is.Number != 1 {
		t.Errorf("%+v", is)
	}
	if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close?uid=x", "a", "")); p.Code != problem.Invalid {
		t.Errorf("another request with the key: %+v", p)
	}
}

// TestAMonthBeforeTheTenantHasNoInvoice, and takes no number.
func TestAMonthBeforeTheTenantHasNoInvoice(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "1", CreationTimestamp: metav1.NewTime(time.Date(2026, 10, 31, 23, 59, 0, 0, time.UTC))}})
	for _, query := range []string{"", "?uid=1"} {
		if p := problemOf(t, m.post(admin, "/v1/tenants/acme/invoices/2026-09/close"+query, "", "")); p.Code != problem.Conflict || p.Detail != "Tenant acme was not there in 2026-09." {
			t.Errorf("%q: %+v", query, p)
		}
	}
	if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK); is.Number != 1 || is.Net != "3.64" {
		t.Errorf("the month of its first hour: %+v", is)
	}
}

// TestWebhooksOfTheNextTenantGetNoInvoiceOfTheFormerOne, also those that were made before webhooks had a UID.
func TestWebhooksOfTheNextTenantGetNoInvoiceOfTheFormerOne(t *testing.T) {
	m, cluster := newBilled(t)
	m.forget(cluster, "acme", "former", time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 10, 31, 23, 30, 0, 0, time.UTC))
	for id, of := range map[string][2]string{"former": {"acme", "former"}, "next": {"acme", "next"}, "without": {"acme", ""}, "platform": {"", ""}} {
		w := store.Webhook{ID: id, Tenant: of[0], TenantUID: of[1], URL: "https://hooks.example.com/", Types: []string{"invoice.*"}, Created: m.now, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: id, Data: []byte("x")}}
		if err := m.store.CreateWebhook(t.Context(), w, store.Event{At: m.now}); err != nil {
			t.Fatal(err)
		}
	}
	admin := m.holder("root", "admin")
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK) // Nobody has the name.
	apply(t, cluster, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "next", CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC))}})
	read[invoices.Invoice](m, m.post(admin, "/v1/invoices/1/credit", "", `{"reason":"x"}`), http.StatusCreated)
	m.now = time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	admin = m.holder("root in December", "admin") // Tokens expire.
	read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-11/close", "", ""), http.StatusOK)
	former := []string{"invoice/1 invoice.closed", "invoice/1 invoice.credited"}
	next := []string{"invoice/3 invoice.closed"}
	for webhook, want := range map[string][]string{"former": former, "next": next, "without": next, "platform": append(former, next...)} {
		found, err := m.store.ListDeliveries(t.Context(), webhook, "", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range slices.Backward(found) {
			got = append(got, d.Object+" "+d.Type)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", webhook, diff)
		}
	}
}
