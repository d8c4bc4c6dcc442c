package invoices

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// NumberInput names an invoice or a credit note.
type NumberInput struct {
	Number string `path:"number" pattern:"^[1-9][0-9]{0,17}$" maxLength:"18"`
}

type (
	showInput struct {
		NumberInput
		Format string `query:"format" enum:"json,csv,html" doc:"What is answered. Default: the first of application/json, text/csv and text/html that the header Accept names, and JSON without one."`
		Accept string `header:"Accept" hidden:"true"`
	}
	// shown writes an invoice in the format that the caller wants.
	shown struct{ Body func(huma.Context) }
)

// format is how an invoice is written.
type format struct {
	name, contentType string
	write             func(*Invoice) ([]byte, error)
	// policy is the Content-Security-Policy, "" for that of all answers.
	policy string
}

// formats are all formats. The first one is the default.
var formats = []format{
	{"json", "application/json", asJSON, ""},
	{"csv", "text/csv", asCSV, ""},
	{"html", "text/html", asHTML, policy},
}

func asJSON(is *Invoice) ([]byte, error) {
	text, err := json.Marshal(is)
	return append(text, '\n'), err
}

// wanted returns the format that the caller wants.
func (in *showInput) wanted() format {
	for _, f := range formats {
		if f.name == in.Format {
			return f
		}
	}
	for each := range strings.SplitSeq(in.Accept, ",") {
		accepted, _, err := mime.ParseMediaType(each)
		for _, f := range formats {
			if in.Format == "" && err == nil && accepted == f.contentType {
				return f
			}
		}
	}
	return formats[0]
}

func (o *Operations) show(ctx context.Context, in *showInput) (*shown, error) {
	is, err := o.find(ctx, in.NumberInput)
	if err != nil {
		return nil, err
	}
	invoice, err := invoiceOf(&is)
	if err != nil {
		return nil, err
	}
	f := in.wanted()
	text, err := f.write(&invoice)
	if err != nil {
		return nil, fmt.Errorf("writing the invoice %s as %s: %w", in.Number, f.name, err)
	}
	return &shown{func(to huma.Context) {
		contentType := f.contentType
		if contentType != "application/json" {
			contentType += "; charset=utf-8"
		}
		to.SetHeader("Content-Type", contentType)
		to.SetHeader("Vary", "Accept")
		if f.policy != "" {
			to.SetHeader("Content-Security-Policy", f.policy)
		}
		if f.name == "csv" {
			to.SetHeader("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d.csv"`, invoice.Kind, invoice.Number))
		}
		to.SetStatus(http.StatusOK)
		// It fails only if the client disconnected.
		_, _ = to.BodyWriter().Write(text)
	}}, nil
}
