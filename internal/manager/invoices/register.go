package invoices

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	const maxBody = 16 << 10
	op := func(id, method, path, summary string, errs ...int) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, DefaultStatus: http.StatusOK, Tags: []string{"Invoices"}, Security: auth.Required, MaxBodyBytes: maxBody,
			Errors: problem.Statuses(append(errs, http.StatusForbidden, http.StatusNotFound)...)}
	}
	prices := op("listPrices", http.MethodGet, "/v1/prices", "The price lists, by name", http.StatusBadRequest)
	prices.Description = "Of one tenant it is the one that holds for it, with the discounts of that tenant only."
	huma.Register(api, prices, o.prices)
	list := op("listInvoices", http.MethodGet, "/v1/invoices", "Invoices and credit notes, the newest first, and the draft of a month that is not closed", http.StatusBadRequest)
	huma.Register(api, list, o.list)
	show := op("getInvoice", http.MethodGet, "/v1/invoices/{number}", "An invoice or a credit note, as JSON, as CSV or as a page to be printed")
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Invoice](), true, "")
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	show.Responses = map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{"application/json": {Schema: schema}, "text/csv": text, "text/html": text}}}
	huma.Register(api, show, o.show)
	end := op("closeInvoice", http.MethodPost, "/v1/tenants/{tenant}/invoices/{month}/close", "The invoice of a month that ended, which gets its number if the month has none", http.StatusConflict)
	end.Description = "From then on it never changes. Sent again, it answers the same invoice."
	huma.Register(api, end, o.close)
	credit := op("creditInvoice", http.MethodPost, "/v1/invoices/{number}/credit", "A credit note, which takes back all of an invoice or a part of it", http.StatusConflict)
	credit.DefaultStatus = http.StatusCreated
	huma.Register(api, credit, o.credit)
}
