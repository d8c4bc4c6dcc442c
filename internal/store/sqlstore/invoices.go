package sqlstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/database"
)

const invoiceColumns = `number, id, tenant, tenant_uid, month, credits, currency, net, total, reason, closed, closed_by`

// readInvoice reads invoiceColumns, and what follows them.
func readInvoice(further ...func(*store.Invoice) any) func(database.Scan) (store.Invoice, error) {
	return func(scan database.Scan) (i store.Invoice, err error) {
		var closed int64
		columns := []any{&i.Number, &i.ID, &i.Tenant, &i.TenantUID, &i.Month, &i.Credits, &i.Currency, &i.Net, &i.Total, &i.Reason, &closed, &i.ClosedBy}
		for _, column := range further {
			columns = append(columns, column(&i))
		}
		err = scan(columns...)
		i.Closed = fromMicros(closed)
		return i, err
	}
}

// AddInvoice implements store.Invoices. All invoices share one lock, which is held until the number is committed: so a transaction that fails leaves no gap, and whoever reads on after a number misses
// none.
func (s *Store) AddInvoice(ctx context.Context, tenant, month string, next func([]store.Invoice) (store.Invoice, error), with store.InvoiceRecord) (is store.Invoice, err error) {
	err = s.db.Write(ctx, "invoices", func(ctx context.Context, tx *database.Tx) error {
		before, err := database.All(ctx, tx, readInvoice(), `SELECT `+invoiceColumns+` FROM invoices WHERE tenant = ? AND month = ? ORDER BY number`, tenant, month)
		if err != nil {
			return err
		}
		if is, err = next(before); err != nil || is.Number != 0 {
			return err
		}
		is.Tenant, is.Month = tenant, month
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(number), 0) + 1 FROM invoices`).Scan(&is.Number); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO invoices (`+invoiceColumns+`, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			is.Number, is.ID, is.Tenant, is.TenantUID, is.Month, is.Credits, is.Currency, is.Net, is.Total, is.Reason, micros(is.Closed), is.ClosedBy, is.Body); err != nil {
			return err
		}
		message, err := with.Message(is)
		if err != nil {
			return err
		}
		if err := enqueue(ctx, tx, message); err != nil {
			return err
		}
		e := with.Event
		e.Object, e.Tenant = "invoice/"+strconv.FormatInt(is.Number, 10), tenant
		return insertEvent(ctx, tx, e)
	})
	if err != nil {
		return store.Invoice{}, fmt.Errorf("storing an invoice: %w", err)
	}
	return is, nil
}

// GetInvoice implements store.Invoices.
func (s *Store) GetInvoice(ctx context.Context, number int64) (store.Invoice, error) {
	read := readInvoice(func(i *store.Invoice) any { return &i.Body })
	is, err := database.One(ctx, s.db, read, `SELECT `+invoiceColumns+`, body FROM invoices WHERE number = ?`, number)
	if err != nil {
		return store.Invoice{}, fmt.Errorf("reading an invoice: %w", err)
	}
	return is, nil
}

// ListInvoices implements store.Invoices.
func (s *Store) ListInvoices(ctx context.Context, of store.InvoiceFilter, before int64, limit int) ([]store.Invoice, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	where, arguments := []string{`number < ?`}, []any{before}
	for _, field := range []struct{ column, value string }{{"tenant", of.Tenant}, {"tenant_uid", of.TenantUID}, {"month", of.Month}} {
		if field.value != "" {
			where, arguments = append(where, field.column+` = ?`), append(arguments, field.value)
		}
	}
	all, err := database.All(ctx, s.db, readInvoice(), `SELECT `+invoiceColumns+` FROM invoices WHERE `+strings.Join(where, ` AND `)+` ORDER BY number DESC LIMIT ?`, append(arguments, limit)...)
	if err != nil {
		return nil, fmt.Errorf("reading invoices: %w", err)
	}
	return all, nil
}
