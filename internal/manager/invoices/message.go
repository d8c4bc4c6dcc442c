package invoices

import (
	"fmt"

	"github.com/kubeop/kubeop/internal/manager/eventtype"
	"github.com/kubeop/kubeop/internal/store"
)

// about is what a message to webhooks says of an invoice or a credit note.
type about struct {
	Tenant   string `json:"tenant"`
	Number   int64  `json:"number"`
	Month    string `json:"month"`
	Currency string `json:"currency"`
	Net      string `json:"net"`
	Total    string `json:"total"`
	Credits  int64  `json:"credits,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// messageOf returns the message about an invoice or a credit note, while present is the Tenant that has the name. That about a credit note is sent after that about its invoice.
func messageOf(is store.Invoice, present store.TenantRef) (store.Message, error) {
	kind, invoice := eventtype.InvoiceClosed, is.Number
	if is.Credits != 0 {
		kind, invoice = eventtype.InvoiceCredited, is.Credits
	}
	id, body, err := eventtype.Encode(kind, is.Closed, about{is.Tenant, is.Number, is.Month, is.Currency, is.Net, is.Total, is.Credits, is.Reason})
	if err != nil {
		return store.Message{}, err
	}
	return store.Message{ID: id, Type: kind, Tenant: is.Tenant, TenantUID: is.TenantUID, MatchUID: is.TenantUID != present.UID, Object: fmt.Sprintf("invoice/%d", invoice), At: is.Closed, Body: body}, nil
}
