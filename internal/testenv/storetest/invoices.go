package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/store"
)

func invoiceOf(id string) store.Invoice {
	return store.Invoice{ID: id, TenantUID: "uid", Currency: "EUR", Net: "6.73", Total: "8.01", Closed: now, ClosedBy: "root", Body: []byte(`{"net":"6.73"}`)}
}

// with is what is written with an invoice: an event, and a message with the number.
func with(e store.Event) store.InvoiceRecord {
	return store.InvoiceRecord{Event: e, Message: func(is store.Invoice) (store.Message, error) {
		return store.Message{ID: fmt.Sprint("m", is.Number), Type: "invoice.closed", Tenant: is.Tenant, TenantUID: is.TenantUID, Object: fmt.Sprint("invoice/", is.Number), At: now, Body: []byte("{}")}, nil
	}}
}

// closeMonth adds an invoice, unless the month has one.
func closeMonth(t *testing.T, s store.Store, tenant, month, id string) (store.Invoice, error) {
	return s.AddInvoice(t.Context(), tenant, month, func(before []store.Invoice) (store.Invoice, error) {
		if len(before) > 0 {
			return before[0], nil
		}
		return invoiceOf(id), nil
	}, with(store.Event{At: now, Actor: "root", Action: "closeInvoice"}))
}

func mustClose(t *testing.T, s store.Store, tenant, month, id string) store.Invoice {
	t.Helper()
	is, err := closeMonth(t, s, tenant, month, id)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// numbers lists invoices in pages of two.
func numbers(t *testing.T, s store.Store, of store.InvoiceFilter) (all []int64) {
	t.Helper()
	for before := int64(0); ; {
		some, err := s.ListInvoices(t.Context(), of, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range some {
			all, before = append(all, i.Number), i.Number
		}
		if len(some) < 2 {
			return all
		}
	}
}

// invoices: those of all tenants have one series of numbers, and a month that is closed again has the same invoice.
func invoices(t *testing.T, s store.Store) {
	want := invoiceOf("a")
	want.Number, want.Tenant, want.Month = 1, "acme", "2026-10"
	for _, id := range []string{"a", "b"} {
		if diff := cmp.Diff(want, mustClose(t, s, "acme", "2026-10", id), cmp.FilterPath(func(p cmp.Path) bool { return id == "b" && p.String() == "Body" }, cmp.Ignore())); diff != "" {
			t.Errorf("%s: -want +closed:\n%s", id, diff)
		}
	}
	mustClose(t, s, "beta", "2026-10", "c")
	mustClose(t, s, "acme", "2026-11", "d")
	if got, err := s.GetInvoice(t.Context(), 1); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v: -want +stored:\n%s", err, cmp.Diff(want, got))
	}
	if _, err := s.GetInvoice(t.Context(), 4); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	for of, want := range map[store.InvoiceFilter][]int64{
		{}: {3, 2, 1}, {Tenant: "acme"}: {3, 1}, {Month: "2026-10"}: {2, 1}, {Tenant: "acme", Month: "2026-10"}: {1}, {Tenant: "acme", TenantUID: "uid"}: {3, 1}, {Tenant: "acme", TenantUID: "other"}: nil, {Tenant: "gone"}: nil,
	} {
		if got := numbers(t, s, of); !slices.Equal(want, got) {
			t.Errorf("%+v: %v, want %v", of, got, want)
		}
	}
	if diff := cmp.Diff([]string{"closeInvoice invoice/3", "closeInvoice invoice/1"}, objects(t, s, "acme")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
}

// creditNotes: a credit note has the next number, and whoever adds one knows those before of the month.
func creditNotes(t *testing.T, s store.Store) {
	mustClose(t, s, "acme", "2026-10", "a")
	mustClose(t, s, "beta", "2026-10", "b")
	var seen [][]string
	credit := func(id string) (store.Invoice, error) {
		return s.AddInvoice(t.Context(), "acme", "2026-10", func(before []store.Invoice) (store.Invoice, error) {
			var ids []string
			for _, i := range before {
				ids = append(ids, fmt.Sprintf("%d %s %d", i.Number, i.ID, i.Credits))
			}
			if seen = append(seen, ids); len(before) > 2 {
				return store.Invoice{}, errors.New("nothing is left")
			}
			note := invoiceOf(id)
			note.Credits, note.Net, note.Total, note.Reason = 1, "-6.73", "-8.01", "wrong price"
			return note, nil
		}, with(store.Event{At: now, Action: "creditInvoice"}))
	}
	for i, id := range []string{"c", "d"} {
		note, err := credit(id)
		if err != nil || note.Number != int64(3+i) {
			t.Errorf("%v: %+v", err, note)
		}
		stored, err := s.GetInvoice(t.Context(), note.Number)
		if diff := cmp.Diff(note, stored); err != nil || diff != "" {
			t.Errorf("%v: -added +stored:\n%s", err, diff)
		}
	}
	if _, err := credit("e"); err == nil || err.Error() != "storing an invoice: nothing is left" {
		t.Errorf("one that is refused: %v", err)
	}
	if diff := cmp.Diff([][]string{{"1 a 0"}, {"1 a 0", "3 c 1"}, {"1 a 0", "3 c 1", "4 d 1"}}, seen); diff != "" {
		t.Errorf("-want +seen:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"creditInvoice invoice/4", "creditInvoice invoice/3", "closeInvoice invoice/1"}, objects(t, s, "acme")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
}

// noGaps: what fails after it got its number leaves none that is missing.
func noGaps(t *testing.T, s store.Store) {
	mustClose(t, s, "acme", "2026-08", "a")
	for _, id := range []string{"a", "b"} { // The ID of the first one is taken, and the second one has no body.
		_, err := s.AddInvoice(t.Context(), "acme", "2026-09", func([]store.Invoice) (store.Invoice, error) {
			is := invoiceOf(id)
			if id == "b" {
				is.Body = nil
			}
			return is, nil
		}, with(store.Event{At: now}))
		if err == nil {
			t.Errorf("%s is stored", id)
		}
	}
	if is := mustClose(t, s, "acme", "2026-09", "c"); is.Number != 2 {
		t.Errorf("the next one has the number %d", is.Number)
	}
	if got := objects(t, s, ""); len(got) != 2 {
		t.Errorf("there are events about %q", got)
	}
}

// invoiceMessages: what is stored has one message, for the webhooks of its tenant and of the platform, and what is not has none.
func invoiceMessages(t *testing.T, s store.Store) {
	own := store.TenantRef{Name: "acme", UID: "uid"}
	addWebhookOf(t, s, own, "a", now)
	addWebhookOf(t, s, store.TenantRef{Name: "acme", UID: "the next one"}, "next", now)
	addWebhookOf(t, s, store.TenantRef{Name: "beta", UID: "uid"}, "beta", now)
	addWebhookOf(t, s, store.TenantRef{}, "platform", now)
	add := func(is store.Invoice, message error) error {
		record := with(store.Event{At: now})
		of := record.Message
		record.Message = func(is store.Invoice) (store.Message, error) {
			m, _ := of(is)
			return m, message
		}
		_, err := s.AddInvoice(t.Context(), "acme", "2026-10", func([]store.Invoice) (store.Invoice, error) { return is, nil }, record)
		return err
	}
	broken, refused := invoiceOf("b"), errors.New("too large")
	broken.Body = nil
	mustClose(t, s, "acme", "2026-10", "a")
	mustClose(t, s, "acme", "2026-10", "again")
	if err := add(broken, nil); err == nil {
		t.Error("an invoice without a body is stored")
	}
	if err := add(invoiceOf("c"), refused); !errors.Is(err, refused) {
		t.Errorf("one whose message fails: %v", err)
	}
	if err := add(invoiceOf("d"), nil); err != nil {
		t.Error(err)
	}
	for webhook, want := range map[string][]string{"a": {"m1", "m2"}, "platform": {"m1", "m2"}, "next": nil, "beta": nil} {
		if got := messagesOf(t, s, webhook); !slices.Equal(got, want) {
			t.Errorf("%s has the messages %q, want %q", webhook, got, want)
		}
	}
	if got := numbers(t, s, store.InvoiceFilter{}); !slices.Equal(got, []int64{2, 1}) {
		t.Errorf("there are %v", got)
	}
}

// messagesOf returns the messages of a webhook, the oldest first.
func messagesOf(t *testing.T, s store.Store, webhook string) (all []string) {
	t.Helper()
	found, err := s.ListDeliveries(t.Context(), webhook, "", 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Backward(found) {
		all = append(all, d.Message.ID)
	}
	return all
}

// invoicesStay: nothing removes them, whatever their age.
func invoicesStay(t *testing.T, s store.Store) {
	mustClose(t, s, "acme", "2026-08", "a")
	if err := s.Sweep(t.Context(), now.Add(20*365*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s, store.InvoiceFilter{}); !slices.Equal(got, []int64{1}) {
		t.Errorf("there are %v", got)
	}
}
