package store

import (
	"context"
	"time"
)

// Invoice is a closed invoice of a tenant for a month, or a credit note about one. Neither ever changes.
type Invoice struct {
	// Number is that of the series of this store, which has invoices and credit notes: 1 is the first one, and there are no gaps.
	Number int64
	// ID is that of the request that made it.
	ID string
	// Tenant is the one that pays, and TenantUID distinguishes it from a later one of the same name.
	Tenant, TenantUID string
	// Month is a calendar month in UTC, such as 2026-11.
	Month string
	// Credits is the number of the invoice that a credit note is about, 0 for an invoice.
	Credits int64
	// Currency is a code of ISO 4217. Net and Total are decimals; those of a credit note are negative.
	Currency, Net, Total string
	// Reason is why there is the credit note, "" for an invoice.
	Reason string
	Closed time.Time
	// ClosedBy is the ID of the caller.
	ClosedBy string
	// Body is the whole invoice, in JSON. Lists do not have it.
	Body []byte
}

// InvoiceFilter says which invoices are listed: all, but for the fields that are set.
type InvoiceFilter struct {
	Tenant, TenantUID, Month string
}

// InvoiceRecord is what is written with an invoice or a credit note, in its transaction.
type InvoiceRecord struct {
	// Event is that of the audit log. AddInvoice sets its object and its tenant.
	Event Event
	// Message returns the message to webhooks about the invoice, which has its number. AddInvoice enqueues it for all webhooks that want it.
	Message func(Invoice) (Message, error)
}

// Invoices keeps invoices and credit notes for ever.
type Invoices interface {
	// AddInvoice adds what next returns, with the number after the last one, and writes the event and the message about it, in one transaction. next gets all of the tenant's month, in
	// the order of numbers and without bodies; no other transaction adds one meanwhile. If next returns one that has a number already, nothing is added or written. It may be called several
	// times. If it or with.Message returns an error, nothing is added, and AddInvoice returns that error.
	AddInvoice(ctx context.Context, tenant, month string, next func(before []Invoice) (Invoice, error), with InvoiceRecord) (Invoice, error)
	// GetInvoice returns ErrNotFound if there is none with the number.
	GetInvoice(ctx context.Context, number int64) (Invoice, error)
	// ListInvoices returns up to limit whose numbers are less than before, the newest first; with before 0 it begins with the newest.
	ListInvoices(ctx context.Context, of InvoiceFilter, before int64, limit int) ([]Invoice, error)
}

// Payer is a Tenant that exists, or existed. Usage goes by the names of Tenants, and is kept longer than they exist: the payers of a name say whose it is.
type Payer struct {
	TenantRef
	// Gone is when a manager found that the Tenant does not exist any more, zero while it exists.
	Gone time.Time
	// PriceList is the one that the Tenant named last, "" for the default one.
	PriceList string
}

// Payers keeps who pays for usage, as long as the Tenant exists, and then for KeepUsage.
type Payers interface {
	// RecordPayers records all payers that exist at a time, and those that were gone shortly before, if their Gone is set. All others are gone from then on. Gone stays as it was first recorded until
	// the Tenant exists again, as after a restore of the cluster.
	RecordPayers(ctx context.Context, all []Payer, now time.Time) error
	// ListPayers returns the payers of a name, all if it is "", ordered by name and creation.
	ListPayers(ctx context.Context, name string) ([]Payer, error)
}

// Alerts keeps which alerts were given, for KeepUsage.
type Alerts interface {
	// RecordAlert records an alert at the time of its message, and enqueues the message for all webhooks that want it, in one transaction. If there is an alert with the key, it does neither and reports
	// false.
	RecordAlert(ctx context.Context, key string, m Message) (first bool, err error)
}
