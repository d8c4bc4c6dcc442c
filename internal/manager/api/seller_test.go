package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/invoices"
)

// TestAnInvoiceHasTheSellerOfItsPrices, as it was when the month was closed, and so has its credit note.
func TestAnInvoiceHasTheSellerOfItsPrices(t *testing.T) {
	m, cluster := newBilled(t)
	admin := m.holder("root", "admin")
	if is := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/beta/invoices/2026-10/close", "", ""), http.StatusOK); is.Seller != nil {
		t.Errorf("without a seller: %+v", is.Seller)
	}
	list, first := pricesOf("standard", "1.01"), v1alpha1.PriceSeller{Name: "=Example <GmbH>", Address: "Main Street 1\n12345 Town", TaxID: "DE123456789"}
	list.Spec.Seller = &first
	apply(t, cluster, list)
	closed := read[invoices.Invoice](m, m.post(admin, "/v1/tenants/acme/invoices/2026-10/close", "", ""), http.StatusOK)
	next := pricesOf("standard", "1.01")
	next.Spec.Seller = &v1alpha1.PriceSeller{Name: "Successor"}
	apply(t, cluster, next)
	again := read[invoices.Invoice](m, m.as(admin, "GET", "/v1/invoices/2", ""), http.StatusOK)
	note := read[invoices.Invoice](m, m.post(admin, "/v1/invoices/2/credit", "", `{"reason":"x"}`), http.StatusCreated)
	for what, is := range map[string]invoices.Invoice{"the answer": closed, "the invoice": again, "the credit note": note} {
		if diff := cmp.Diff(&first, is.Seller); diff != "" {
			t.Errorf("%s: -want +seller:\n%s", what, diff)
		}
	}
	if page := read[invoices.InvoicePage](m, m.as(admin, "GET", "/v1/invoices?tenant=acme", ""), http.StatusOK); page.Draft == nil || page.Draft.Seller == nil || page.Draft.Seller.Name != "Successor" {
		t.Errorf("the draft of the next month is %+v", page.Draft)
	}
	for query, want := range map[string][]string{
		"?format=html": {"=Example &lt;GmbH&gt;\nMain Street 1\n12345 Town", "DE123456789"}, "?format=csv": {"seller,'=Example <GmbH>,", "seller address,\"Main Street 1\n12345 Town\",", "seller tax id,DE123456789,"},
		"?format=json": {`"seller":{"name":"=Example \u003cGmbH\u003e","address":"Main Street 1\n12345 Town","taxID":"DE123456789"}`},
	} {
		for _, number := range []string{"2", "3"} {
			text := m.as(admin, "GET", "/v1/invoices/"+number+query, "").Body.String()
			for _, want := range want {
				if !strings.Contains(text, want) {
					t.Errorf("%s of %s has no %q:\n%s", query, number, want, text)
				}
			}
		}
	}
	if text := m.as(admin, "GET", "/v1/invoices/1?format=html", "").Body.String() + m.as(admin, "GET", "/v1/invoices/1?format=csv", "").Body.String(); strings.Contains(text, "eller") {
		t.Errorf("without a seller:\n%s", text)
	}
}
